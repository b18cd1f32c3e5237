package graph

// Removal says what becomes of packages that were installed because others needed
// them, and that nobody needs any more.
type RemovalPolicy string

// AnnotationRemoval on the Lock has that of the package manager, where it removes any.
const AnnotationRemovalPolicy = "xpkg.dev/dependency-removal"

// The policies. KeepOrphans leaves them to a person, and RemoveOrphans has the package
// manager delete them.
const (
	KeepOrphans   RemovalPolicy = "None"
	RemoveOrphans RemovalPolicy = "Orphans"
)
