package permission

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/rights"
)

// CeilingSource is a file or a ConfigMap with a ceiling over permissions, or neither.
type CeilingSource struct {
	// File is a path. It is read each time that it is needed.
	File string
	// ConfigMap is a name in the namespace of the manager.
	ConfigMap string
}

// Read gives the ceiling as it is now. The failure is CeilingUnreadable: nobody is
// given anything then.
func (s CeilingSource) Read(ctx context.Context, reader client.Reader, namespace string) (rights.Ceiling, error) {
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
