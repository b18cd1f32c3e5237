package graph

// RemovalPolicy is the policy for dependencies that no package requires any more.
type RemovalPolicy string

// AnnotationRemovalPolicy on the Lock is the removal policy of the manager, if it removes packages.
const AnnotationRemovalPolicy = "xpkg.dev/dependency-removal"

// Removal policies. KeepOrphans leaves orphans to users; with RemoveOrphans, the manager deletes
// them.
const (
	KeepOrphans   RemovalPolicy = "None"
	RemoveOrphans RemovalPolicy = "Orphans"
)
