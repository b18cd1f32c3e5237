package firstgen

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/controller/status"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A controller that requests privileges of the node is refused with the field, whatever would run it, and before
// anything is read or written for it.
func TestControllersWithPrivilegesOfTheNodeAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ pod, field string }{
		"network":   {`{"hostNetwork":true,"containers":[{"name":"c","image":"i"}]}`, "hostNetwork"},
		"processes": {`{"hostPID":true,"containers":[{"name":"c","image":"i"}]}`, "hostPID"},
		"path": {
			`{"volumes":[{"name":"etc","hostPath":{"path":"/etc"}}],"containers":[{"name":"c","image":"i"}]}`,
			"the hostPath volume etc",
		},
		"driver": {
			`{"volumes":[{"name":"v","flexVolume":{"driver":"x"}}],"containers":[{"name":"c","image":"i"}]}`,
			"the flexVolume volume v",
		},
		"selinux": {
			`{"containers":[{"name":"c","image":"i","securityContext":{"seLinuxOptions":{"type":"spc_t"}}}]}`,
			"seLinuxOptions of the container",
		},
		"probe": {
			`{"containers":[{"name":"c","image":"i","livenessProbe":{"httpGet":{"host":"169.254.169.254","port":80}}}]}`,
			"requests of the node to the host 169.254.169.254",
		},
		"port": {
			`{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"hostPort":80}]}]}`, "the hostPort 80",
		},
		"privileged": {
			`{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}`, "the privileged container",
		},
		"init": {
			`{"initContainers":[{"name":"first","image":"i","securityContext":{"privileged":true}}],"containers":[{"name":"c","image":"i"}]}`,
			"the privileged container first",
		},
		"capability": {
			`{"containers":[{"name":"c","image":"i","securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}]}`,
			"the capability SYS_ADMIN",
		},
	} {
		for kind, by := range map[string]runtime.Runtime{
			"external": runtime.ExternalRuntime{}, "another": &stopping{}, "none": nil,
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				p := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "redis"}}
				p.Spec.CRDs = []packagesv1alpha1.Kind{{APIVersion: "redis.example.org/v1", Kind: "RedisCluster"}}
				p.Spec.Controller.Deployment = &packagesv1alpha1.ControllerDeployment{Spec: apiruntime.RawExtension{
					Raw: []byte(`{"template":{"spec":` + tc.pod + `}}`),
				}}
				r := &Packages{NewRuntime: func(string) runtime.Runtime { return by }}
				_, _, err := r.reconcile(t.Context(), p)
				if !errors.Is(err, manifests.ErrPrivileges) ||
					!strings.Contains(err.Error(), "the controller of package/redis requests "+tc.field) {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

// discoveryServer returns an API server that serves the kinds of an API group while serves is set, and counts the
// requests.
func discoveryServer(t *testing.T, serves *atomic.Bool) (cluster *apply.Cluster, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		doc := apidiscovery.APIGroupDiscoveryList{}
		if serves.Load() {
			doc.Items = []apidiscovery.APIGroupDiscovery{
				{ObjectMeta: metav1.ObjectMeta{Name: "redis.example.org"}, Versions: []apidiscovery.APIVersionDiscovery{{
					Version: "v1", Resources: []apidiscovery.APIResourceDiscovery{{
						Resource: "redisclusters", ResponseKind: &metav1.GroupVersionKind{Kind: "RedisCluster"},
					}},
				}}}}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(doc); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	cluster, err := apply.NewCluster(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return cluster, requests
}

// Packages share the reads of the served kinds, and each of them notices when its CRD is deleted.
func TestPackagesShareTheReadsOfServedKinds(t *testing.T) {
	const packages = 50
	serves := &atomic.Bool{}
	serves.Store(true)
	cluster, requests := discoveryServer(t, serves)
	r := &Packages{Base: Base{API: kube.API{Cluster: cluster}}}
	p := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "redis"}}
	p.Spec.CRDs = []packagesv1alpha1.Kind{{APIVersion: "redis.example.org/v1", Kind: "RedisCluster"}}
	for range packages {
		resources, missing, err := r.resources(t.Context(), p)
		if err != nil || missing != "" || len(resources) != 1 || resources[0].Resource != "redisclusters" {
			t.Fatalf("%v, %q, %v", resources, missing, err)
		}
	}
	if n := requests.Load(); n >= packages {
		t.Errorf("%d requests for %d Packages", n, packages)
	}
	serves.Store(false)
	wait.Until(t, time.Minute, "the deleted CRD is noticed", func() (string, bool) {
		_, missing, err := r.resources(t.Context(), p)
		return missing, err == nil && missing == "RedisCluster of redis.example.org/v1"
	})
}

// A Package depends on CRDs that are named like in app.yaml, or by their kind as in the records of today's packages.
// Its controller may use all of them, and any other text is refused.
func TestDependenciesOfPackagesGiveThePermissions(t *testing.T) {
	serves := &atomic.Bool{}
	serves.Store(true)
	cluster, _ := discoveryServer(t, serves)
	b := newBase(t)
	b.API.Cluster, b.API.Status = cluster, &status.Reporter{Now: func() time.Time { return time.Unix(1, 0) }}
	r := &Packages{Base: *b, NewRuntime: func(string) runtime.Runtime { return nil }}
	for crd, want := range map[string]string{
		"redisclusters.redis.example.org/v1": "redisclusters", "RedisCluster.redis.example.org/v1": "redisclusters",
		"RedisCluster.redis.example.org": "redisclusters",
		"others.redis.example.org":       "others", "*.redis.example.org/v1": "*", "Absent.redis.example.org/v1": "none",
		"":  "none",
		"*": "", "*/v1": "", "nodot": "", "a b.redis.example.org": "", "redisclusters.redis.example.org/": "",
		"Thing.group/v1": "",
	} {
		t.Run(crd, func(t *testing.T) {
			p := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "redis"}}
			p.Spec.DependsOn = []packagesv1alpha1.InstallSpec{{CRD: crd}}
			_, _, err := r.reconcile(t.Context(), p)
			if want == "" {
				if !errors.Is(err, ErrReference) || !strings.Contains(err.Error(), "depends on the CRD") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if errors.Is(err, ErrReference) {
				t.Fatal(err)
			}
			required, err := r.required(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			rules, err := rulesOf(p, nil, required)
			got := "none"
			if len(rules) == 2 {
				got = rules[1].Resources[0]
			}
			if err != nil || got != want {
				t.Errorf("the rules are %+v (%v), want %s", rules, err, want)
			}
		})
	}
}

// A Package that is ready without a controller costs no reads of what a controller had.
func TestPackagesWithoutAControllerAreWithdrawnOnce(t *testing.T) {
	p := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "redis", UID: "u", Generation: 2,
	}}
	reads := 0
	b := newBase(t, p)
	b.API.Live = interceptor.NewClient(b.API.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			reads++
			return c.Get(ctx, key, o, opts...)
		},
	})
	b.API.Status = &status.Reporter{Now: func() time.Time { return time.Unix(1, 0) }}
	r := &Packages{Base: *b, NewRuntime: func(string) runtime.Runtime { return nil }}
	ready := func(is corev1.ConditionStatus) {
		p.SetConditions(metav1.NewTime(time.Unix(1, 0)), v1.Ready(is, "Reason", ""))
	}
	for _, tc := range []struct {
		name   string
		change func()
		reads  bool
	}{
		{"never reconciled", func() {}, true},
		{"ready", func() { p.Status.ObservedGeneration = 2; ready(corev1.ConditionTrue) }, false},
		{"not ready", func() { ready(corev1.ConditionFalse) }, true},
		{"changed", func() { ready(corev1.ConditionTrue); p.Generation = 3 }, true},
		{"had a controller", func() {
			p.Status.ObservedGeneration = 3
			p.Status.ControllerRef = &packagesv1alpha1.ObjectReference{Name: "redis"}
		}, true},
	} {
		reads = 0
		tc.change()
		if _, _, err := r.reconcile(t.Context(), p); err != nil || (reads > 0) != tc.reads {
			t.Errorf("%s: %d reads (%v)", tc.name, reads, err)
		}
	}
}
