// Package bootstrap generates the manifests with which the package manager runs in a
// cluster: CRDs, a ServiceAccount with exactly the permissions that the manager uses, and
// its Deployment.
//
// The package is pure. The command prints or applies its results, and the Helm chart is
// generated from them.
package bootstrap
