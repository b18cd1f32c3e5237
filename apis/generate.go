// Package apis holds the Kubernetes API types of xpkg, a folder per group and
// version.
package apis

//go:generate go tool -modfile=../tools/go.mod controller-gen object:headerFile=/dev/null paths=./pkg/...
//go:generate go tool -modfile=../tools/go.mod controller-gen crd paths=./pkg/v1/... output:crd:artifacts:config=crds
