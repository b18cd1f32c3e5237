package controller_test

import (
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/testing/publish"
)

func provider(name string, crds ...string) string {
	return meta("Provider", name, "") + strings.Join(crds, "")
}

func meta(kind, name, spec string) string {
	return fmt.Sprintf(
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: %s\nmetadata:\n  name: %s\n  annotations:\n    meta.crossplane.io/source: example.org/%s\n%s",
		kind, name, name, spec,
	)
}

func crd(group, kind, description string) string {
	return publish.Definition(group, kind, description)
}

// labeled puts a label on an object of a stream.
func labeled(stream, name, key, value string) string {
	return strings.Replace(stream, "  name: "+name+
		"\n", fmt.Sprintf("  name: %s\n  labels: {%s: %s}\n", name, key, value), 1)
}
