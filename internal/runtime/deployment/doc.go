// Package deployment runs the programs of packages as Deployments of the cluster.
//
// An object is written with one call when it differs, and with none when it does
// not. The digest of what was last written is an annotation on the object, as it is
// on the objects of packages. Every write carries the resourceVersion that was read,
// so that of two managers one loses, and looks again.
//
// What somebody else adds is left alone: labels, annotations, pull secrets of a
// ServiceAccount, containers that an admission webhook puts in. What somebody else
// changes in what is ours is brought back.
package deployment
