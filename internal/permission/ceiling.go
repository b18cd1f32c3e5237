package permission

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// CeilingSource is a file or a ConfigMap with a ceiling over permissions, or neither.
type CeilingSource struct {
	// File is a path. It is read each time that it is needed.
	File string
	// ConfigMap is a name in the namespace of the manager.
	ConfigMap string
}

// ParseCeilingSource parses FILE or configmap/NAME, the value of a flag.
func ParseCeilingSource(text string) CeilingSource {
	if name, ok := strings.CutPrefix(text, "configmap/"); ok {
		return CeilingSource{ConfigMap: name}
	}
	return CeilingSource{File: text}
}

// Read returns the current policy. It fails with CeilingUnreadable; no permissions are
// granted then.
func (s CeilingSource) Read(ctx context.Context, reader client.Reader, namespace string) (rbac.Ceiling, error) {
	ceiling, err := s.parse(ctx, reader, namespace)
	if err != nil {
		return rbac.Ceiling{}, rbac.ErrCeilingUnreadable.New(err, "the permission ceiling cannot be read")
	}
	return ceiling, nil
}

func (s CeilingSource) parse(ctx context.Context, reader client.Reader, namespace string) (rbac.Ceiling, error) {
	switch {
	case s.ConfigMap != "":
		var found corev1.ConfigMap
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.ConfigMap}, &found); err != nil {
			return rbac.Ceiling{}, err
		}
		return rbac.ParseData(found.Data)
	case s.File != "":
		raw, err := fileutil.ReadFile(ctx, s.File)
		if err != nil {
			return rbac.Ceiling{}, err
		}
		return rbac.Parse(raw)
	}
	return rbac.Ceiling{}, nil
}
