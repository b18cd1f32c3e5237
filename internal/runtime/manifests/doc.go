// Package manifests builds the Kubernetes objects of a package runtime: its
// ServiceAccount, its Deployment and its Service, customized by a DeploymentRuntimeConfig
// or a ControllerConfig (packages guide, "spec.controllerConfigRef").
//
// The package is pure: it reads and writes nothing. Equal input produces equal objects.
package manifests
