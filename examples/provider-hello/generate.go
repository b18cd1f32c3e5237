// Package hello is the example of a provider package: its API types, its runtime and, in
// the folder package, the files of the package.
package hello

//go:generate go tool -modfile=../../tools/go.mod controller-gen object paths=./api/...
//go:generate go tool -modfile=../../tools/go.mod controller-gen crd paths=./api/... output:crd:artifacts:config=package/crds
