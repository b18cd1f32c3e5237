// Package image builds the images and indexes of packages, and reads image
// configurations.
//
// # Building
//
// [Build] returns the [Image] of a package from an [Input]: package.yaml, examples,
// extra layers for third parties and an optional runtime image. The result has one
// annotated layer for each part, above the layers of the runtime image:
//
//	┌──────────────────────────────┐
//	│ extra layers                 │ io.crossplane.xpkg: (any value but base)
//	│ examples                     │ io.crossplane.xpkg: upbound
//	│ package.yaml                 │ io.crossplane.xpkg: base
//	├──────────────────────────────┤
//	│ layers of the runtime image  │ unchanged, optional
//	└──────────────────────────────┘
//
// The annotations are in the manifest, so every tool that copies the image keeps
// them. The configuration has the labels from which older tools restore them.
//
// A build is reproducible: equal input has an equal digest on every machine, because
// layers contain no owner, mode or time of the build machine, and the configuration
// contains a time only if [Input].Created is set.
//
// # Indexes
//
// [NewIndex] joins images for several platforms. [AppendExtensions] adds the
// extensions manifest, which Crossplane never downloads. Both keep the bytes of the
// images.
//
// # Reading
//
// [Load] returns the image of an [oci.Artifact] for one platform, for example a
// runtime image from an archive. [FromConfig] builds a manifest for archives that
// have none, such as the output of docker save. [ParseConfig] reads a configuration
// and keeps the fields that it does not interpret.
//
// [Image] and [Index] implement [oci.Artifact]: [oci.Copy] writes them to any
// [oci.Destination]. Both are immutable and safe for concurrent use.
package image
