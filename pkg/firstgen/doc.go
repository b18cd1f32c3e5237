// Package firstgen reads packages of the first generation of the package format ("Crossplane Packages", revision
// 1.2): a folder named .registry in an image or a repository.
//
//	.registry/
//	├── app.yaml            metadata, required
//	├── install.yaml        the Deployment of the controller, optional
//	├── behavior.yaml       the templating form of a controller, instead of install.yaml
//	├── icon.svg            also png, jpg, gif
//	├── ui-schema.yaml
//	└── resources/          CRDs and their metadata in folders with arbitrary names
//	    ├── group.yaml
//	    ├── *crd.yaml
//	    ├── *resource.yaml
//	    ├── *icon.svg
//	    └── *ui-schema.yaml
//
// [Read] returns a [Package], a value without references to its files: every CRD in apiextensions.k8s.io/v1 with
// the labels and annotations that the document prescribes, the metadata, the Deployment, and the permissions that
// follow from the owned and the required CRDs. [Find] locates the folder in a file system, including the source form
// that repositories used before they built an image.
//
// Metadata applies to a CRD by position: a file applies to the CRDs in its folder and below, the nearest file wins,
// and within a folder a file for the kind wins over a file without a kind. A resource file names its kind in the
// field id or in its file name; an icon or UI schema names it in its file name.
//
// The package decodes untrusted input. All limits of [xpkg.Limits] apply, and every problem is an [xpkg.Finding] with
// a code, a file and a line.
package firstgen
