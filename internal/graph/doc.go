// Package graph computes what the packages of a control plane need of each other:
// which of them belong together, what is missing among those, and what is there in
// vain. It asks nobody; who resolves is pkg/resolver.
package graph
