// Package firstgen implements the controllers of the first generation of packages, the group packages.crossplane.io.
// They are front-ends: a Provider of pkg.crossplane.io has the CRDs of each package.
//
//   - [ClusterInstalls] maintains a Provider for each ClusterPackageInstall.
//   - [NamespaceInstalls] runs the controller of a PackageInstall in its namespace. Its CRDs are those of a Provider
//     that an administrator shares.
//   - [Packages] runs the controllers of Packages in their namespaces: the records of PackageInstalls, and the Packages
//     that users create.
//
// The install objects have a namespace, so their authors are often not administrators. An object in a namespace never
// has an effect outside of the namespace that an administrator has not allowed: see [Options].
package firstgen
