package apiserver

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

func TestStatusesOfTheAPIServerHaveCodes(t *testing.T) {
	resource, cause := schema.GroupResource{Group: "pkg.crossplane.io", Resource: "providers"}, errors.New("cause")
	for _, tc := range []struct {
		err  error
		want errcode.Code
	}{
		{apierrors.NewForbidden(resource, "boats", cause), apply.ErrForbidden},
		{apierrors.NewUnauthorized("expired"), apply.ErrForbidden},
		{apierrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: "Provider"}, "boats", nil), ErrRefusedByServer},
		{apierrors.NewConflict(resource, "boats", cause), apply.ErrMoved},
		{apierrors.NewTooManyRequests("overloaded", 1), ErrCluster},
		{apierrors.NewInternalError(cause), ErrCluster},
		{apierrors.NewServiceUnavailable("starting"), ErrCluster},
		{apierrors.NewServerTimeout(resource, "get", 1), ErrCluster},
		{errors.New("connection refused"), ErrCluster},
	} {
		if got := errcode.From(Classify(tc.err, "read %s", "boats")); got.Code.Name != tc.want.Name || got.Do == "" {
			t.Errorf("%v: %s, and what to do: %q; want %s", tc.err, got.Code.Name, got.Do, tc.want.Name)
		}
	}
}
