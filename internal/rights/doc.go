// Package rights computes what a package's program and the people who use its types
// may do: the roles and bindings of a revision, the ceiling over what packages
// request, and what an identity lacks. It is pure.
package rights
