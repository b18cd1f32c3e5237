package manager

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xpkg-dev/xpkg/internal/doctor"
)

// A cause that concerns many packages is one row and one remedy, which names all of them, without a manifest for each.
func TestDoctorPrintsACauseOnce(t *testing.T) {
	facts := doctor.Facts{Minor: 40}
	var names []string
	for i := range 25 {
		name := fmt.Sprintf("boats-%02d", i)
		names = append(names, "provider/"+name)
		facts.Packages = append(facts.Packages, doctor.Package{
			Kind: "Provider", Name: name, Reason: "PermissionMissing", Fix: "Apply a role.",
			Message: fmt.Sprintf("PermissionMissing: it lacks get on boats%d\n\n%s", i, strings.Repeat("a manifest\n", 80)),
		})
	}
	var out strings.Builder
	writeFindings(&out, doctor.Check(facts))
	text := out.String()
	for _, want := range []string{
		"provider/boats-00 is not ready: PermissionMissing: it lacks get on boats0 (for similar reasons also " +
			strings.Join(names[1:], ", ") + ")\n",
		"\npackages: Apply a role. Run `xpkg describe " + strings.Join(names, " ") + "`.\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "manifest") || len(text) > 4000 {
		t.Errorf("%d bytes:\n%s", len(text), text)
	}
}
