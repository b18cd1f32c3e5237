package controller

import (
	"testing"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
)

// A failure is final, or one of the runtime, by the property of its code. Everything else may pass.
func TestFailuresAreClassifiedByTheirCodes(t *testing.T) {
	for reason, want := range map[v1.ConditionReason]revision.Failure{
		"ImmutableField": revision.Final, "StoredVersionInUse": revision.Final, "NameTaken": revision.Final, "ObjectRejected": revision.Final,
		"AdmissionDenied": revision.Final, "NoProgram": revision.Final,
		"CrashLoop": revision.CrashLoop, "Crashed": revision.RuntimeFailure, "NotServing": revision.RuntimeFailure,
		"Unavailable": revision.Transient, "ForeignOwner": revision.Transient, "ObjectDeleting": revision.Transient,
		"TagNotFound": revision.Transient, "Healthy": revision.Transient, "": revision.Transient,
	} {
		if got := classifyFailure(reason); got != want {
			t.Errorf("%q is classified as %d, want %d", reason, got, want)
		}
	}
}
