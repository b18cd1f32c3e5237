// Package deployment runs package runtimes as Deployments of the cluster.
//
// Each object that differs from the desired state is written with one call, and an object that
// matches is not written. The digest of the last written content is an annotation on the object, as
// on the objects of packages. Every write carries the resourceVersion that was read, so that one of
// two concurrent managers gets a conflict and retries.
//
// Additions by others are preserved: labels, annotations, pull secrets of a
// ServiceAccount, containers injected by an admission webhook. Changes by others to
// managed fields are reverted.
package deployment
