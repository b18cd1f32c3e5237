package firstgen

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/controller/kube"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// A controller that requests privileges of the node is refused with the field, whatever would run it, and before anything is
// read or written for it.
func TestControllersWithPrivilegesOfTheNodeAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ pod, field string }{
		"network":    {`{"hostNetwork":true,"containers":[{"name":"c","image":"i"}]}`, "hostNetwork"},
		"processes":  {`{"hostPID":true,"containers":[{"name":"c","image":"i"}]}`, "hostPID"},
		"path":       {`{"volumes":[{"name":"etc","hostPath":{"path":"/etc"}}],"containers":[{"name":"c","image":"i"}]}`, "the hostPath volume etc"},
		"driver":     {`{"volumes":[{"name":"v","flexVolume":{"driver":"x"}}],"containers":[{"name":"c","image":"i"}]}`, "the flexVolume volume v"},
		"selinux":    {`{"containers":[{"name":"c","image":"i","securityContext":{"seLinuxOptions":{"type":"spc_t"}}}]}`, "seLinuxOptions of the container"},
		"probe":      {`{"containers":[{"name":"c","image":"i","livenessProbe":{"httpGet":{"host":"169.254.169.254","port":80}}}]}`, "requests of the node to the host 169.254.169.254"},
		"port":       {`{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80,"hostPort":80}]}]}`, "the hostPort 80"},
		"privileged": {`{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}`, "the privileged container"},
		"init":       {`{"initContainers":[{"name":"first","image":"i","securityContext":{"privileged":true}}],"containers":[{"name":"c","image":"i"}]}`, "the privileged container first"},
		"capability": {`{"containers":[{"name":"c","image":"i","securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}]}`, "the capability SYS_ADMIN"},
	} {
		for kind, by := range map[string]runtime.Runtime{"external": runtime.ExternalRuntime{}, "another": &stopping{}, "none": nil} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				p := &packagesv1alpha1.Package{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "redis"}}
				p.Spec.CRDs = []packagesv1alpha1.Kind{{APIVersion: "redis.example.org/v1", Kind: "RedisCluster"}}
				p.Spec.Controller.Deployment = &packagesv1alpha1.ControllerDeployment{Spec: apiruntime.RawExtension{Raw: []byte(`{"template":{"spec":` + tc.pod + `}}`)}}
				r := &Packages{NewRuntime: func(string) runtime.Runtime { return by }}
				_, _, err := r.reconcile(t.Context(), p)
				if !errors.Is(err, manifests.ErrPrivileges) || !strings.Contains(err.Error(), "the controller of package/redis requests "+tc.field) {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

// discoveryServer returns an API server that serves the kinds of an API group while serves is set, and counts the requests.
func discoveryServer(t *testing.T, serves *atomic.Bool) (cluster *apply.Cluster, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		doc := apidiscovery.APIGroupDiscoveryList{}
		if serves.Load() {
			doc.Items = []apidiscovery.APIGroupDiscovery{{ObjectMeta: metav1.ObjectMeta{Name: "redis.example.org"}, Versions: []apidiscovery.APIVersionDiscovery{{
				Version: "v1", Resources: []apidiscovery.APIResourceDiscovery{{Resource: "redisclusters", ResponseKind: &metav1.GroupVersionKind{Kind: "RedisCluster"}}},
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
