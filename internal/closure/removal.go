package closure

// Removal says what becomes of packages that were installed because others needed
// them, and that nobody needs any more.
type Removal string

// AnnotationRemoval on the Lock has that of the package manager, where it removes any.
const AnnotationRemoval = "xpkg.dev/dependency-removal"

// The policies. KeepOrphans leaves them to a person, and RemoveOrphans has the package
// manager delete them.
const (
	KeepOrphans   Removal = "None"
	RemoveOrphans Removal = "Orphans"
)
