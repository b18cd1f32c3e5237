// Package project reads Crossplane Projects, the source format of `crossplane project` and `up project`.
//
//	crossplane-project.yaml ──Read──▶ Project ──Layout──▶ xpkg.ReadFolder ──▶ the Folder of a Configuration
//	upbound.yaml                         └────Embedded──▶ the Functions of the Project
//
// Read is pure. It maps the file to values that exist for a folder with a crossplane.yaml: a metadata object, and the
// folders of the objects. The rest of the library does not know Projects. The metadata object is a Configuration of
// meta.pkg.crossplane.io/v1, in canonical form, so that equal Projects become equal packages. Findings about it have
// the lines of the author's file.
//
// The API versions are dev.crossplane.io/v1alpha1, meta.dev.upbound.io/v1alpha1 and meta.dev.upbound.io/v2alpha1.
//
//	metadata                       name, labels, annotations
//	spec.maintainer, source,       the annotations meta.crossplane.io/…, in place of those of the metadata
//	  license, description, readme
//	spec.additionalMetadata        annotations (meta.dev.upbound.io)
//	spec.crossplane                spec.crossplane; without it ">=v2.0.0-rc.0", except in meta.dev.upbound.io/v1alpha1
//	spec.dependsOn                 spec.dependsOn, in the same order (meta.dev.upbound.io)
//	spec.dependencies              spec.dependsOn: those with xpkg and without apiOnly (dev.crossplane.io)
//	spec.apiDependencies, git,     nothing: they are schemas for functions
//	  http, k8s
//	spec.paths.apis                XRDs, Compositions and ManagedResourceActivationPolicies. Default "apis"
//	spec.paths.operations          Operations, CronOperations and WatchOperations. Default "operations"; unknown to
//	                               meta.dev.upbound.io/v1alpha1
//	spec.paths.examples            the examples of the package. Default "examples"
//	spec.paths.functions           a package for each folder in it. Default "functions"
//	spec.functions                 the only functions, if it is not empty (dev.crossplane.io)
//	spec.paths.tests, schemas,     nothing
//	  spec.schemas
//	spec.imageConfigs, imageConfig nothing: they rewrite images for the author's machine, and are no part of the package
//	spec.repository                the repository of the package; that of the function NAME is REPOSITORY_NAME
//
// A document below paths.apis or paths.operations that is not of these kinds is left out of the package. The field's
// tools do that silently; here it is a warning.
//
// The file of a Project replaces a crossplane.yaml beside it, as it does for the field's tools, which never read that
// file in a Project. Of the two file names, crossplane-project.yaml comes first.
package project
