// Package shape tells what the program of a package looks like in a cluster: its
// ServiceAccount, its Deployment and its Service, as the field expects them, with
// what a DeploymentRuntimeConfig or a ControllerConfig asks for (packages guide,
// "spec.controllerConfigRef").
//
// It is pure: what is known of a revision goes in, and objects come out. Equal
// input gives equal objects.
package shape
