package manager

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/rights"
)

// Permissions say how the manager gives programs of packages their rights. Without
// them somebody else does.
type Permissions struct {
	// Ceiling is where the ceiling over requests is. Without one only what is
	// dangerous is refused.
	Ceiling CeilingSource
	// Increase says what becomes of a version that asks for more than the one that
	// runs. Empty means AllowIncrease.
	Increase IncreasePolicy
	// Namespaced confines programs to the namespace of the manager, for everything
	// that lies in a namespace.
	Namespaced bool
}

// IncreasePolicy says what becomes of a version that asks for more rights.
type IncreasePolicy string

// The policies for more rights.
const (
	// AllowIncrease gives them, under the ceiling.
	AllowIncrease IncreasePolicy = "Allow"
	// ApproveIncrease waits until a person has approved them.
	ApproveIncrease IncreasePolicy = "Approve"
)

// CeilingSource is a file or a ConfigMap with a ceiling over permissions, or neither.
type CeilingSource struct {
	// File is a path. It is read each time that it is needed.
	File string
	// ConfigMap is a name in the namespace of the manager.
	ConfigMap string
}

// read gives the ceiling as it is now. The failure is CeilingUnreadable: nobody is
// given anything then.
func (s CeilingSource) read(ctx context.Context, reader client.Reader, namespace string) (rights.Ceiling, error) {
	ceiling, err := s.parse(ctx, reader, namespace)
	if err != nil {
		return rights.Ceiling{}, rights.ErrCeilingUnreadable.New(err, "the ceiling over permissions is not known")
	}
	return ceiling, nil
}

func (s CeilingSource) parse(ctx context.Context, reader client.Reader, namespace string) (rights.Ceiling, error) {
	switch {
	case s.ConfigMap != "":
		var found corev1.ConfigMap
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.ConfigMap}, &found); err != nil {
			return rights.Ceiling{}, err
		}
		return rights.ParseData(found.Data)
	case s.File != "":
		raw, err := os.ReadFile(s.File)
		if err != nil {
			return rights.Ceiling{}, err
		}
		return rights.Parse(raw)
	}
	return rights.Ceiling{}, nil
}

// approves reports whether somebody has to approve more rights of a package. Who may
// edit a package can ask for that, and cannot do without it.
func (p Permissions) approves(pkg v1.Package) bool {
	return p.Increase == ApproveIncrease || pkg.GetAnnotations()[permission.AnnotationIncrease] == string(ApproveIncrease)
}
