package firstgen

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

func TestTheVersionOfARecordIsTheStatedOneOrTheTag(t *testing.T) {
	for stated, want := range map[string]string{"": "v1", "0.0.1": "0.0.1"} {
		c := withTemplates(t, "{}")
		c.pkg.Meta.Annotations[xpkg.AnnotationVersion] = stated
		record, err := newRecord(newInstall(packagesv1alpha1.ClusterPackageInstallKind), c)
		if err != nil || record.Spec.Version != want {
			t.Errorf("version %q, error %v, want %q", record.Spec.Version, err, want)
		}
	}
}

// A conflict names the version whose CRDs are installed, not one that was rolled back or is refused.
func TestVersionConflictNamesTheInstalledVersion(t *testing.T) {
	rev := func(tag string, active, established, objects bool) v1.PackageRevision {
		r := &v1.ProviderRevision{}
		r.Spec.Image, r.Spec.DesiredState = "example.org/a/boats:"+tag, v1.RevisionInactive
		if active {
			r.Spec.DesiredState = v1.RevisionActive
		}
		if established {
			r.SetConditions(metav1.NewTime(time.Unix(1, 0)), v1.RevisionHealthy())
		}
		if objects {
			r.Status.ObjectRefs = []v1.TypedReference{{Kind: "CustomResourceDefinition", Name: "boats.example.org", UID: "1"}}
		}
		return r
	}
	for name, tc := range map[string]struct {
		revisions []v1.PackageRevision
		want      string
	}{
		"rolled back":   {[]v1.PackageRevision{rev("v2", false, false, true), rev("v1", true, true, true)}, "v1"},
		"refused":       {[]v1.PackageRevision{rev("v2", true, false, false), rev("v1", false, false, true)}, "v1"},
		"established":   {[]v1.PackageRevision{rev("v2", true, true, true), rev("v1", false, false, true)}, "v2"},
		"never refused": {nil, "v2"},
	} {
		p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
		p.Spec.Package = "example.org/a/boats:v2"
		for _, tag := range []string{"v1", "v2", "v3"} {
			ref, err := oci.ParseReference("example.org/a/boats:"+tag, oci.ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			err = checkVersion(ref, p, tc.revisions)
			if tag == tc.want || tag == "v2" {
				if err != nil {
					t.Errorf("%s: %s is refused: %v", name, tag, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), "has the CRDs of "+tc.want) {
				t.Errorf("%s: %s fails with %v, want the version %s", name, tag, err, tc.want)
			}
		}
	}
}
