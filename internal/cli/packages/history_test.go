package packages

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// TestRollbackTarget checks which revision a rollback returns to: by default the one before the active revision, which
// is not the newest after an automatic rollback.
func TestRollbackTarget(t *testing.T) {
	rev := func(name string, number int64, state v1.RevisionState) v1.PackageRevision {
		return &v1.ProviderRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ProviderRevisionSpec{PackageRevisionSpec: v1.PackageRevisionSpec{
				Revision: number, DesiredState: state, Image: fmt.Sprintf("registry.example.org/acme/boats:v%d.0.0", number),
			}},
		}
	}
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
	p.Status.Rollback = &v1.Rollback{From: "boats-crashed", To: "boats-c"}
	upgraded := []v1.PackageRevision{
		rev("boats-c", 3, v1.RevisionActive), rev("boats-b", 2, v1.RevisionInactive), rev("boats-a", 1, v1.RevisionInactive),
	}
	rolledBack := []v1.PackageRevision{
		rev("boats-c", 3, v1.RevisionInactive), rev("boats-b", 2, v1.RevisionActive), rev("boats-a", 1, v1.RevisionInactive),
	}
	failed := rev("boats-b", 2, v1.RevisionInactive)
	failed.SetConditions(metav1.Time{}, v1.RevisionUnhealthy("crashes"))
	afterFailure := []v1.PackageRevision{
		rev("boats-a", 3, v1.RevisionActive), failed, rev("boats-0", 1, v1.RevisionInactive),
	}
	crashed := []v1.PackageRevision{
		rev("boats-c", 4, v1.RevisionActive), rev("boats-crashed", 3, v1.RevisionInactive),
		rev("boats-a", 1, v1.RevisionInactive),
	}
	neverActive := []v1.PackageRevision{
		rev("boats-b", 2, v1.RevisionActive), rev("boats-withdrawn", 0, v1.RevisionInactive),
	}
	for name, tc := range map[string]struct {
		revisions []v1.PackageRevision
		to, want  string
	}{
		"never active":              {neverActive, "", ""},
		"failed":                    {afterFailure, "", "boats-0"},
		"only failed":               {afterFailure[:2], "", ""},
		"rolled back automatically": {crashed, "", "boats-a"},
		"only rolled back":          {crashed[:2], "", ""},
		"rolled back, by name":      {crashed, "boats-crashed", "boats-crashed"},
		"previous":                  {upgraded, "", "boats-b"},
		"number":                    {upgraded, "1", "boats-a"},
		"name":                      {upgraded, "boats-a", "boats-a"},
		"tag":                       {upgraded, "v1.0.0", "boats-a"},
		"absent tag":                {upgraded, "v4.0.0", ""},
		"after a rollback":          {rolledBack, "", "boats-a"},
		"forward by number":         {rolledBack, "3", "boats-c"},
		"absent":                    {upgraded, "4", ""},
		"first revision":            {upgraded[:1], "", ""},
		"no revision":               {nil, "", ""},
		"none is active":            {rolledBack[:1], "", ""},
		"none is active, by number": {rolledBack[:1], "3", "boats-c"},
	} {
		got, err := rollbackTarget(p, tc.revisions, tc.to)
		switch {
		case tc.want == "":
			if !errors.Is(err, ErrNoRevision) {
				t.Errorf("%s: %v, want %s", name, err, ErrNoRevision.Name)
			}
			if isNamed := strings.Contains(
				errcode.From(err).Do, "`kubectl patch providerrevision boats-c ",
			); isNamed != (name == "none is active") {
				t.Errorf("%s: %v (%s)", name, err, errcode.From(err).Do)
			}
		case err != nil || got.GetName() != tc.want:
			t.Errorf("%s: %v, %v, want %s", name, got, err, tc.want)
		}
	}
}

// A repeated rollback does not return to the version that the former one left.
func TestRepeatedRollback(t *testing.T) {
	rev := func(tag string, number int64, state v1.RevisionState) v1.PackageRevision {
		return &v1.ProviderRevision{
			ObjectMeta: metav1.ObjectMeta{Name: "boats-" + tag},
			Spec: v1.ProviderRevisionSpec{PackageRevisionSpec: v1.PackageRevisionSpec{
				Revision: number, DesiredState: state, Image: "registry.example.org/acme/boats:" + tag,
			}},
		}
	}
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
	p.Spec.Package = "registry.example.org/acme/boats:v2"
	revision.RecordVersion(p, "registry.example.org/acme/boats:v3", true)
	revisions := []v1.PackageRevision{
		rev("v2", 4, v1.RevisionActive), rev("v3", 3, v1.RevisionInactive), rev("v1", 1, v1.RevisionInactive),
	}
	if got, err := rollbackTarget(p, revisions, ""); err != nil || got.GetName() != "boats-v1" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := rollbackTarget(p, revisions, "v3"); err != nil || got.GetName() != "boats-v3" {
		t.Errorf("by name: got %v, %v", got, err)
	}
	_, err := rollbackTarget(p, revisions[:2], "")
	if !errors.Is(err, ErrNoRevision) || !strings.Contains(err.Error(), "rolled back from v3") ||
		!strings.Contains(errcode.From(err).Do, "`xpkg rollback provider/boats --to 3`") {
		t.Errorf("without another revision: %v (%s)", err, errcode.From(err).Do)
	}
}

// The rollback of a version that waits to be activated keeps the active revision, whatever else there is.
func TestRollbackOfAVersionThatWaits(t *testing.T) {
	rev := func(name string, number int64, state v1.RevisionState) v1.PackageRevision {
		return &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ProviderRevisionSpec{
			PackageRevisionSpec: v1.PackageRevisionSpec{Revision: number, DesiredState: state},
		}}
	}
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
	p.SetConditions(metav1.Time{}, v1.Inactive("boats-waits waits to be activated"))
	revisions := []v1.PackageRevision{
		rev("boats-b", 2, v1.RevisionActive), rev("boats-a", 1, v1.RevisionInactive),
		rev("boats-waits", 0, v1.RevisionInactive),
	}
	if got, err := rollbackTarget(p, revisions, ""); err != nil || got.GetName() != "boats-b" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestHealthOfARevisionThatWasNeverActive checks that a revision without a number has no health, whatever its
// conditions are: the manager has verified its content, and run nothing.
func TestHealthOfARevisionThatWasNeverActive(t *testing.T) {
	for number, want := range map[int64]string{0: "Unknown", 1: "True"} {
		rev := &v1.ProviderRevision{Spec: v1.ProviderRevisionSpec{PackageRevisionSpec: v1.PackageRevisionSpec{
			Revision: number, DesiredState: v1.RevisionInactive,
		}}}
		rev.SetConditions(metav1.Time{}, v1.RevisionHealthy())
		if got := revisionViews([]v1.PackageRevision{rev})[0].Healthy; got != want {
			t.Errorf("number %d: %s, want %s", number, got, want)
		}
	}
}

// TestRollbackPinsTheContent checks that a rollback names the digest of the revision: its tag may have moved.
func TestRollbackPinsTheContent(t *testing.T) {
	for _, tc := range []struct{ image, digest, want string }{
		{"ghcr.io/acme/boats:v1.0.0", "sha256:ab", "ghcr.io/acme/boats:v1.0.0@sha256:ab"},
		{"ghcr.io/acme/boats@sha256:ab", "sha256:ab", "ghcr.io/acme/boats@sha256:ab"},
		{"ghcr.io/acme/boats:v1.0.0", "", "ghcr.io/acme/boats:v1.0.0"},
		{"boats", "sha256:ab", "boats"},
	} {
		rev := &v1.ProviderRevision{}
		rev.RevisionSpec().Image, rev.RevisionSpec().Digest = tc.image, tc.digest
		if got := contentOf(rev); got != tc.want {
			t.Errorf("%s, %s: got %s, want %s", tc.image, tc.digest, got, tc.want)
		}
	}
}
