package lock

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// active returns an active revision with a Ready condition.
func active(image string, ready corev1.ConditionStatus, reason, message string) *v1.ProviderRevision {
	rev := &v1.ProviderRevision{}
	rev.Spec.Image, rev.Spec.DesiredState = image, v1.RevisionActive
	if reason != "" {
		rev.SetConditions(metav1.Now(), v1.Condition{
			Type: v1.TypeReady, Status: ready, Reason: v1.ConditionReason(reason), Message: message,
		})
	}
	return rev
}

func TestResolvedSummarizesTheActiveRevisions(t *testing.T) {
	const (
		yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	)
	ready := active("r/ready:v1", yes, "Ready", "")
	inactive := active("r/inactive:v1", no, "DependencyMissing", "DependencyMissing: r/x")
	inactive.Spec.DesiredState = v1.RevisionInactive
	deleted := active("r/deleted:v1", no, "DependencyMissing", "DependencyMissing: r/x")
	deleted.DeletionTimestamp = new(metav1.Now())
	counted := active("r/counted:v1", no, "RegistryUnavailable", "RegistryUnavailable: down")
	counted.Status.FoundDependencies = 1
	unrelated := active("r/unrelated:v1", no, "RuntimeCrashLoop", "the runtime exits")
	skipped := active("r/skipped:v1", no, "DependencyMissing", "")
	skipped.Spec.SkipDependencyResolution = true
	coming := active("r/coming:v1", no, "DependencyComing", "DependencyComing: r/x is being installed")
	missing := active("r/missing:v1", no, "DependencyMissing", "DependencyMissing: r/x is not installed")

	cases := map[string]struct {
		revisions []v1.PackageRevision
		status    corev1.ConditionStatus
		message   []string
	}{
		"no revision":                            {nil, "", nil},
		"only inactive and deleted revisions":    {[]v1.PackageRevision{inactive, deleted}, "", nil},
		"a ready revision":                       {[]v1.PackageRevision{ready}, yes, nil},
		"a failure that is not of dependencies":  {[]v1.PackageRevision{ready, unrelated}, yes, nil},
		"a revision that skips its dependencies": {[]v1.PackageRevision{skipped}, yes, nil},
		"only a new revision":                    {[]v1.PackageRevision{active("r/new:v1", "", "", "")}, "", nil},
		"a ready revision and a new one":         {[]v1.PackageRevision{ready, active("r/new:v1", "", "", "")}, yes, nil},
		"a dependency that is being installed": {[]v1.PackageRevision{ready, coming}, unknown, []string{
			"r/coming:v1: DependencyComing: r/x",
		}},
		"a missing dependency": {[]v1.PackageRevision{ready, coming, missing}, no, []string{
			"r/missing:v1: DependencyMissing: r/x",
		}},
		"a registry that does not answer": {[]v1.PackageRevision{counted}, no, []string{
			"r/counted:v1: RegistryUnavailable: down",
		}},
		"more failures than are named": {
			[]v1.PackageRevision{missing, missing, missing, missing, missing}, no, []string{"and 2 more"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Resolved(c.revisions)
			if ok != (c.status != "") || got.Status != c.status {
				t.Fatalf("got %+v, %t, want status %q", got, ok, c.status)
			}
			for _, part := range c.message {
				if !strings.Contains(got.Message, part) {
					t.Errorf("the message %q does not contain %q", got.Message, part)
				}
			}
			if c.message == nil && got.Message != "" {
				t.Errorf("message %q, want none", got.Message)
			}
		})
	}
}
