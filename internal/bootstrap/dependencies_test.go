package bootstrap_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// needy gives a Configuration that needs a package of each kind, at a version or above.
// These packages are there from then on at that version.
func (s *stand) needy(t *testing.T, name, needed, version string) v1.Package {
	t.Helper()
	text := fmt.Sprintf("apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata:\n  name: %s\nspec:\n  dependsOn:\n", name)
	for _, kind := range v1.PackageKinds() {
		of := needed + "-" + strings.ToLower(kind)
		ref := s.publish(t, of, version, stream(kind, of+"-"+strings.ReplaceAll(version, ".", "-")))
		text += fmt.Sprintf("  - %s: %s\n    version: \">=%s\"\n", strings.ToLower(kind), strings.TrimSuffix(ref, ":"+version), version)
	}
	return pkg(v1.ConfigurationKind, name, s.publish(t, name, "v1.0.0", text))
}
