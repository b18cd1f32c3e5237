package status

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// A request that the API server does not allow has a code of its own, from whichever controller it comes.
func TestForbiddenRequestsHaveACode(t *testing.T) {
	providers := schema.GroupResource{Group: "pkg.crossplane.io", Resource: "providers"}
	// A policy selects the reason of its denials, and Invalid is the default.
	policy := apierrors.NewForbidden(
		providers, "boats", errors.New("ValidatingAdmissionPolicy 'quiet' with binding 'all' denied request: no"),
	)
	policy.ErrStatus.Reason, policy.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	for _, c := range []struct {
		err     error
		reason  string
		stalled bool
	}{
		{fmt.Errorf("record: %w", apierrors.NewForbidden(providers, "boats", errors.New("cannot patch"))), "Forbidden", true},
		{apierrors.NewForbidden(
			providers, "boats", errors.New("ValidatingAdmissionPolicy \"quiet\" denied request: no"),
		), "AdmissionDenied", true},
		{fmt.Errorf("record: %w", policy), "AdmissionDenied", true},
		{apierrors.NewForbidden(
			providers, "boats",
			errors.New("exceeded quota: small, requested: count/packages.packages.crossplane.io=1, used: 2, limited: 2"),
		), "QuotaExceeded", true},
		{apply.ErrMoved.New(apierrors.NewForbidden(providers, "boats", nil), "update"), "ObjectMoved", false},
		{apierrors.NewConflict(providers, "boats", nil), errcode.Unknown.Name, false},
	} {
		if s := Failed(c.err); string(s.Reason) != c.reason || s.Stalled != c.stalled {
			t.Errorf("%v is %s, stalled %t; want %s, %t", c.err, s.Reason, s.Stalled, c.reason, c.stalled)
		}
	}
}
