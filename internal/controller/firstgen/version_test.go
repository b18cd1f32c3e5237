package firstgen

import (
	"testing"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
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
