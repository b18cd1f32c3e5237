// Package graph computes the dependency graph of the packages of a control plane: components, missing dependencies,
// and orphans. It accesses no registry; pkg/resolver resolves dependencies.
package graph
