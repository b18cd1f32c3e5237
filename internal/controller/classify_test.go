package controller

import (
	"slices"
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/errcodes"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// A failure is final, a refusal or one of the runtime by the property of its code, and refused as well if a revision
// awaits other objects of the cluster before its first write. Everything else may pass.
func TestFailuresAreClassifiedByTheirCodes(t *testing.T) {
	for reason, want := range map[v1.ConditionReason]revision.Failure{
		"PartlyWritten": revision.Partial,
		"CrashLoop":     revision.CrashLoop, "Crashed": revision.RuntimeFailure, "NotServing": revision.RuntimeFailure,
		"Unavailable": revision.Transient, "TagNotFound": revision.Transient, "Healthy": revision.Transient,
		"": revision.Transient,
	} {
		if got := classifyFailure(reason); got != want {
			t.Errorf("%q is classified as %d, want %d", reason, got, want)
		}
	}
	awaits := []string{
		"AuthorityUnusable", "CertificateNotReady", "CertificateSecretTaken", "CertificatesContended",
		"CrossplaneVersion", "DependencyComing", "DependencyMissing", "DependencyName", "DependencyVersion", "Forbidden",
		"KindNotServed", "PermissionDenied",
		"PermissionPolicyUnreadable", "QuotaExceeded", "RuntimeConfigNotFound", "RuntimePrivileges",
	}
	for _, c := range errcodes.All() {
		got := classifyFailure(v1.ConditionReason(c.Name))
		if (got == revision.Final) != c.Final || (got == revision.Refused) != (c.Refusal || slices.Contains(awaits, c.Name)) {
			t.Errorf("%s is classified as %d; final: %t, refusal: %t", c.Name, got, c.Final, c.Refusal)
		}
	}
}
