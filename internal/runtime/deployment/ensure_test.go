package deployment_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

func isStale(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// named returns a configuration that sets the names of objects.
func named(deployment, account string) *v1beta1.DeploymentRuntimeConfig {
	c := &v1beta1.DeploymentRuntimeConfig{}
	if deployment != "" {
		c.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Metadata: &v1beta1.ObjectMeta{Name: &deployment}}
	}
	if account != "" {
		c.Spec.ServiceAccountTemplate = &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Name: &account}}
	}
	return c
}

// Each object is written once, and then only when it differs.
func TestOneWritePerChangedObject(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "aws", "1")
	in := s.input(who[0])
	s.ensure(in)
	if diff := cmp.Diff(
		[]string{"POST serviceaccounts", "POST deployments", "POST services"}, s.takeWrites(),
	); diff != "" {
		t.Errorf("first writes (-want +got):\n%s", diff)
	}
	s.run(in)
	s.ensure(in)
	// Another manager has no record of the writes of this one.
	other := &deployment.Runtime{Client: s.runtime.Client, Pods: s.runtime.Pods, Namespace: s.name}
	if state, err := other.Ensure(t.Context(), s.objects(in)); err != nil || !state.Available {
		t.Errorf("another manager finds %+v, %v", state, err)
	}
	if got := s.takeWrites(); len(got) != 0 {
		t.Errorf("nothing differed, and these were written: %s", got)
	}
	in.PullSecrets = []string{"new"}
	s.ensure(in)
	if diff := cmp.Diff([]string{"PUT serviceaccounts", "PUT deployments"}, s.takeWrites()); diff != "" {
		t.Errorf("writes for a pull secret (-want +got):\n%s", diff)
	}
}

// Changes by others to managed fields are reverted with one write. Their additions stay.
func TestDriftIsRevertedWithOneWrite(t *testing.T) {
	cases := map[string]struct {
		change func(*appsv1.Deployment)
		stays  func(*appsv1.Deployment) bool
		write  bool
	}{
		"Image": {
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }, write: true,
		},
		"Replicas":     {change: func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) }, write: true},
		"NoVariables":  {change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Env = nil }, write: true},
		"Unowned":      {change: func(d *appsv1.Deployment) { d.OwnerReferences = nil }, write: true},
		"LabelRemoved": {change: func(d *appsv1.Deployment) { d.Labels = nil }, write: true},
		"DigestGone": {
			change: func(d *appsv1.Deployment) { delete(d.Annotations, plan.ContentDigestAnnotation) }, write: true,
		},
		"LabelAdded": {
			change: func(d *appsv1.Deployment) { d.Labels["theirs"] = "x" },
			stays:  func(d *appsv1.Deployment) bool { return d.Labels["theirs"] == "x" },
		},
		"Restarted": {
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "now"
			},
			stays: func(d *appsv1.Deployment) bool {
				return d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "now"
			},
		},
		"SidecarInjected": {
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{
					Name: "sidecar", Image: "s",
				})
			},
			stays: func(d *appsv1.Deployment) bool { return len(d.Spec.Template.Spec.Containers) == 2 },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			_, who := s.pkg("Provider", "aws", "1")
			in := s.input(who[0])
			in.Config = named("", "")
			in.Config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Metadata: &v1beta1.ObjectMeta{
				Labels: map[string]string{"ours": "x"},
			}}
			s.run(in)
			s.takeWrites()
			before, live := &appsv1.Deployment{}, &appsv1.Deployment{}
			s.get(before, who[0].Revision.Name)
			s.change(who[0].Revision.Name, tc.change)

			s.ensure(in)
			s.ensure(in)
			var want []string
			if tc.write {
				want = []string{"PUT deployments"}
			}
			if diff := cmp.Diff(want, s.takeWrites()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			s.get(live, who[0].Revision.Name)
			if tc.write {
				if diff := cmp.Diff(before.Spec, live.Spec); diff != "" {
					t.Errorf("spec (-before +after):\n%s", diff)
				}
				if diff := cmp.Diff([]any{before.Labels, before.OwnerReferences, before.Annotations[plan.ContentDigestAnnotation]},
					[]any{live.Labels, live.OwnerReferences, live.Annotations[plan.ContentDigestAnnotation]}); diff != "" {
					t.Errorf("metadata (-before +after):\n%s", diff)
				}
			} else if !tc.stays(live) {
				t.Error("fields of another client were removed")
			}
		})
	}
}

// Fields that the configuration no longer sets are removed. Additions by others stay.
func TestObsoleteMetadataIsRemoved(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "aws", "1")
	in := s.input(who[0])
	in.Config = named("", "")
	in.Config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Metadata: &v1beta1.ObjectMeta{
		Labels: map[string]string{"ours": "x"}, Annotations: map[string]string{"ours": "x"},
	}}
	s.ensure(in)
	s.change(who[0].Revision.Name, func(d *appsv1.Deployment) { d.Labels["theirs"], d.Annotations["theirs"] = "y", "y" })
	in.Config = nil
	s.ensure(in)
	live := &appsv1.Deployment{}
	s.get(live, who[0].Revision.Name)
	if _, ok := live.Annotations["ours"]; ok || live.Annotations["theirs"] != "y" {
		t.Errorf("annotations %v, want theirs and not ours", live.Annotations)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "y"}, live.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// Objects of other owners are never adopted because of their names, and no object of the
// runtime is written in that case.
//
// hardening: H6
func TestNameConflict(t *testing.T) {
	foreign := metav1.OwnerReference{
		APIVersion: "example.org/v1", Kind: "Release", Name: "tools", UID: "helm", Controller: new(true),
	}
	selector := map[string]string{"app": "x"}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "x", Image: "x"}},
	}}
	for _, owners := range [][]metav1.OwnerReference{nil, {foreign}} {
		for _, kind := range []string{"Deployment", "Service"} {
			name := kind + "OfAPerson"
			if owners != nil {
				name = kind + "OfARelease"
			}
			t.Run(name, func(t *testing.T) {
				s := newEnv(t)
				_, who := s.pkg("Provider", "aws", "1")
				meta := metav1.ObjectMeta{Namespace: s.name, OwnerReferences: owners}
				if kind == "Deployment" {
					meta.Name = who[0].Revision.Name
					s.Create(s, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
						Selector: &metav1.LabelSelector{MatchLabels: selector}, Template: pod,
					}})
				} else {
					meta.Name = who[0].Package.Name
					s.Create(s, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
				}
				_, err := s.runtime.Ensure(t.Context(), s.objects(s.input(who[0])))
				for _, err := range []error{err, s.runtime.CheckAccepted(t.Context(), s.objects(s.input(who[0])))} {
					if !errors.Is(err, deployment.ErrNameConflict) || !strings.Contains(err.Error(), meta.Name) {
						t.Errorf("got %v, want NameConflict that names %s", err, meta.Name)
					}
				}
				if got := s.takeWrites(); len(got) != 0 {
					t.Errorf("written: %v, want nothing", got)
				}
			})
		}
	}
}

// Objects restored from a backup carry the UIDs of deleted owners.
func TestRestoredObjectsAreAdopted(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "aws", "1")
	in := s.input(who[0])
	s.ensure(in)
	home, live := &corev1.Namespace{}, &appsv1.Deployment{}
	s.get(home, s.name)
	s.change(who[0].Revision.Name, func(d *appsv1.Deployment) {
		// The other owner keeps it from being collected at once.
		d.OwnerReferences[0].UID = "before"
		d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "Namespace", Name: s.name, UID: home.UID,
		})
	})
	s.ensure(in)
	s.get(live, who[0].Revision.Name)
	c := metav1.GetControllerOf(live)
	if c == nil || c.UID != who[0].Revision.UID {
		t.Errorf("owners %v, want the revision as controller", live.OwnerReferences)
	}
}

// Edge case 104: a selector is immutable, so the Deployment is recreated.
//
// hardening: I-10
func TestChangedSelectorRecreatesDeployment(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "aws", "1")
	in := s.input(who[0])
	o := s.objects(in)
	old := map[string]string{
		"pkg.crossplane.io/provider": "name-of-the-metadata", "pkg.crossplane.io/revision": who[0].Revision.Name,
	}
	o.Deployment.Spec.Selector.MatchLabels, o.Deployment.Spec.Template.Labels = old, old
	s.Create(s, o.Deployment)
	if state := s.ensure(in); state.Reason != deployment.ReasonReplacing {
		t.Errorf("state %+v, want that it is replaced", state)
	}
	s.run(in)
	live := &appsv1.Deployment{}
	s.get(live, who[0].Revision.Name)
	if live.UID == o.Deployment.UID ||
		live.Spec.Selector.MatchLabels["pkg.crossplane.io/provider"] != who[0].Package.Name {
		t.Errorf("selector %v of %s, want that of another Deployment", live.Spec.Selector.MatchLabels, live.UID)
	}
}

// A configuration that renames the Deployment moves the runtime. A Provider never runs
// twice, and a Function keeps serving until the new Deployment does.
func TestRenamedDeploymentIsReplaced(t *testing.T) {
	for kind, first := range map[string]string{"Provider": "DELETE deployments", "Function": "POST deployments"} {
		t.Run(kind, func(t *testing.T) {
			s := newEnv(t)
			_, who := s.pkg(kind, "p", "1")
			in := s.input(who[0])
			s.run(in)
			s.takeWrites()
			in.Config = named("another", "")
			s.run(in)
			wait.Until(t, env.Limit, "the former one is gone", func() (string, bool) {
				s.ensure(in)
				return "it is there", s.missing(&appsv1.Deployment{}, who[0].Revision.Name)
			})
			changes := slices.DeleteFunc(s.takeWrites(), func(w string) bool { return !strings.HasSuffix(w, " deployments") })
			if len(changes) != 2 || changes[0] != first {
				t.Errorf("written: %v, want two changes of Deployments with %s first", changes, first)
			}
		})
	}
}

// The running Deployment stays when the API server rejects its replacement.
func TestRejectedRenameKeepsTheRunningDeployment(t *testing.T) {
	s := newEnv(t)
	_, who := s.pkg("Provider", "p", "1")
	in := s.input(who[0])
	s.run(in)
	in.Config = named("Not_A_Name", "")
	if _, err := s.runtime.Ensure(t.Context(), s.objects(in)); !errors.Is(err, manifests.ErrRejected) {
		t.Errorf("got %v, want RuntimeRejected", err)
	}
	if live := (&appsv1.Deployment{}); s.missing(live, who[0].Revision.Name) || live.DeletionTimestamp != nil {
		t.Error("what ran was ended")
	}
}

// An API server accepts every field of a configuration, and the defaults that the cluster
// adds cause no further write.
func TestAPIServerAcceptsEveryConfiguration(t *testing.T) {
	for name, config := range configurations(t) {
		for _, kind := range []string{"Provider", "Function"} {
			t.Run(name+kind, func(t *testing.T) {
				s := newEnv(t)
				_, who := s.pkg(kind, "aws", "1")
				in := s.input(who[0])
				in.Config, in.PullSecrets = config, []string{"a", "b"}
				s.ensure(in)
				if got := s.takeWrites(); len(got) != 3 {
					t.Errorf("written: %v, want each of three objects once", got)
				}
				// A manager that has just been started.
				fresh := &deployment.Runtime{Client: s.runtime.Client, Pods: s.runtime.Pods, Namespace: s.name}
				for range 3 {
					if _, err := fresh.Ensure(t.Context(), s.objects(in)); err != nil {
						t.Fatal(err)
					}
				}
				if got := s.takeWrites(); len(got) != 0 {
					t.Errorf("written again: %v", slices.Compact(got))
				}
			})
		}
	}
}
