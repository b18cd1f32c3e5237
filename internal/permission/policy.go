package permission

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// PolicySource is a file or a ConfigMap with a policy for requested permissions, or neither.
type PolicySource struct {
	// File is a path. It is read each time that it is needed.
	File string
	// ConfigMap is a name in the namespace of the manager.
	ConfigMap string
}

// ParsePolicySource parses FILE or configmap/NAME, the value of a flag.
func ParsePolicySource(text string) PolicySource {
	if name, ok := strings.CutPrefix(text, "configmap/"); ok {
		return PolicySource{ConfigMap: name}
	}
	return PolicySource{File: text}
}

// Read returns the current policy. It fails with ErrPolicyUnreadable; in that case, no
// permissions are granted.
func (s PolicySource) Read(ctx context.Context, reader client.Reader, namespace string) (rbac.Policy, error) {
	policy, err := s.parse(ctx, reader, namespace)
	if err != nil {
		return rbac.Policy{}, rbac.ErrPolicyUnreadable.New(err, "the permission policy cannot be read")
	}
	return policy, nil
}

func (s PolicySource) parse(ctx context.Context, reader client.Reader, namespace string) (rbac.Policy, error) {
	switch {
	case s.ConfigMap != "":
		var found corev1.ConfigMap
		if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.ConfigMap}, &found); err != nil {
			return rbac.Policy{}, err
		}
		return rbac.ParseData(found.Data)
	case s.File != "":
		raw, err := fileutil.ReadFile(ctx, s.File)
		if err != nil {
			return rbac.Policy{}, err
		}
		return rbac.Parse(raw)
	}
	return rbac.Policy{}, nil
}
