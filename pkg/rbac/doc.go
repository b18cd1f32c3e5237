// Package rbac computes the permissions of package runtimes and of the users of their
// resources: the roles and bindings of a revision, the policy for requested permissions,
// and the permissions that an identity lacks. It is pure.
package rbac
