package controller_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// A package is healthy if the name of its XRD is longer than a label. The roles have the name in an annotation.
func TestXRDsWithLongNamesAreInstalled(t *testing.T) {
	s := newEnv(t)
	s.options.Permissions = &controller.Permissions{}
	s.start(t)
	r := newRegistry(t)
	group := "platform.department.subsidiary.company.example.org"
	for _, plural := range []string{"abcdefghijkl", "abcdefghijkls"} {
		name := plural + "." + group
		ref, _ := r.push(t, fmt.Sprintf("acme/long%d:v1", len(name)), fmt.Sprintf(`apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: long}
---
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: %s}
spec: {group: %s, names: {kind: K%[3]s, plural: %[3]s}, scope: Namespaced, versions: [
  {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}]}
`, name, group, plural))
		p := env.NewPackage(v1.ConfigurationKind, fmt.Sprintf("long%d", len(name)), ref)
		s.CreateTemporary(t, p)
		s.WaitHealthy(t, p)
		role := &rbacv1.ClusterRole{}
		eventually(t, "the role exists", func() bool {
			return s.Client.Get(
				t.Context(), client.ObjectKey{Name: "crossplane:composite:" + name + ":aggregate-to-edit"}, role,
			) == nil
		})
		const key = "rbac.crossplane.io/xrd"
		if long := len(name) > 63; long && role.Annotations[key] != name || !long && role.Labels[key] != name {
			t.Errorf("%s: labels %v, annotations %v", name, role.Labels, role.Annotations)
		}
	}
}

// A package with metadata that the API server refuses on a revision or on its objects is refused with a code and the
// reason, before anything is written.
func TestPackagesWithInvalidMetadataAreRefused(t *testing.T) {
	s := sharedEnv(t)
	r := newRegistry(t)
	for name, c := range map[string]struct {
		metadata     string
		common       map[string]string
		code, reason string
	}{
		"label": {`labels: {team: "a b c"}`, nil, check.ErrInvalidMetaLabels.Name, "metadata.labels[team]"},
		"key":   {`annotations: {"bad key/x": v}`, nil, check.ErrInvalidMetaLabels.Name, "metadata.annotations[bad key/x]"},
		"large": {"annotations: {meta.crossplane.io/readme: " + strings.Repeat("r", 300_000) +
			"}", nil, check.ErrMetaAnnotationsTooLarge.Name, "bytes"},
		"common": {
			"labels: {a: b}", map[string]string{"team": "a b c"}, revision.ErrCommonMetadata.Name, "spec.commonLabels[team]",
		},
	} {
		ref, _ := r.push(t, "acme/metadata-"+name+
			":v1", "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: c, "+c.metadata+"}\n")
		p := env.NewPackage(v1.ConfigurationKind, "metadata-"+name, ref)
		p.PackageSpec().CommonLabels = c.common
		s.CreateTemporary(t, p)
		s.WaitCondition(t, p, v1.TypeReady, corev1.ConditionFalse, c.reason)
		if got := p.GetCondition(v1.TypeReady); string(got.Reason) != c.code {
			t.Errorf("%s: %s: %s", name, got.Reason, got.Message)
		}
		if revisions := s.Revisions(t, p); len(revisions) > 0 {
			t.Errorf("%s: revision %s exists", name, revisions[0].GetName())
		}
	}
}
