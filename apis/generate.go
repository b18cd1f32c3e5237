// Package apis holds the Kubernetes API types of xpkg, with a folder for each group and
// version.
package apis

//go:generate go tool -modfile=../tools/go.mod controller-gen object paths=./pkg/... paths=./packages/... paths=./xpkg/...
//go:generate go tool -modfile=../tools/go.mod controller-gen crd:generateEmbeddedObjectMeta=true paths=./pkg/v1 paths=./pkg/v1beta1 paths=./pkg/v1alpha1 paths=./xpkg/v1alpha1 output:crd:artifacts:config=crds
//go:generate go run ./internal/trim 3 crds/pkg.crossplane.io_controllerconfigs.yaml crds/pkg.crossplane.io_deploymentruntimeconfigs.yaml crds/xpkg.dev_transactions.yaml
//go:generate go tool -modfile=../tools/go.mod controller-gen crd:generateEmbeddedObjectMeta=true paths=./packages/v1alpha1 output:crd:artifacts:config=crds/firstgeneration
