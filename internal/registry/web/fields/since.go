package fields

// A Version is the set of fields that one version of a package has.
type Version struct {
	Tag   string
	Paths map[string]bool
}

// Paths returns the paths of all fields of a tree.
func Paths(tree *Field) map[string]bool {
	out := map[string]bool{}
	tree.Walk(func(f *Field) { out[f.Path] = true })
	return out
}

// Since returns for each field of the last version the first version since which every version has had the field.
// Versions are in ascending order.
func Since(versions []Version) map[string]string {
	if len(versions) == 0 {
		return nil
	}
	last := versions[len(versions)-1]
	since := make(map[string]string, len(last.Paths))
	for path := range last.Paths {
		for i := len(versions) - 1; i >= 0 && versions[i].Paths[path]; i-- {
			since[path] = versions[i].Tag
		}
	}
	return since
}
