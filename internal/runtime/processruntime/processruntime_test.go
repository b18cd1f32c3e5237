package processruntime

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/ports"
	"github.com/xpkg-dev/xpkg/internal/runtime"
	"github.com/xpkg-dev/xpkg/internal/runtime/deployment"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/unpack"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// supervisor is a fake supervisor whose processes have the states that a test sets.
type supervisor struct {
	specs  []sandbox.Spec
	status sandbox.Status
	log    string
}

func (s *supervisor) Ensure(_ context.Context, spec sandbox.Spec) error {
	s.specs = append(s.specs, spec)
	return nil
}

func (s *supervisor) Stop(context.Context, string) error { return nil }

func (s *supervisor) Status(string) (sandbox.Status, bool) { return s.status, true }

func (s *supervisor) Logs(context.Context, string, bool, int) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(s.log)), nil
}

func (s *supervisor) last() sandbox.Spec { return s.specs[len(s.specs)-1] }

// accountFolder is the folder with the files of the ServiceAccount in every pod.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// testEnv is a process runtime with a clock and numbered tokens.
type testEnv struct {
	*Runtime
	supervisor *supervisor
	now        time.Time
	tokens     int
	// uid is the end of the UIDs of objects that are created.
	uid types.UID
}

func newTestEnv() *testEnv {
	s := &testEnv{supervisor: &supervisor{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(types.UID(o.GetName()) + s.uid)
			return c.Create(ctx, o, opts...)
		},
		SubResourceCreate: func(
			_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption,
		) error {
			s.tokens++
			r := sub.(*authenticationv1.TokenRequest)
			r.Status = authenticationv1.TokenRequestStatus{
				Token:               "token-" + strconv.Itoa(s.tokens),
				ExpirationTimestamp: metav1.NewTime(s.now.Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)),
			}
			return nil
		},
	}).Build()
	s.Runtime = New(Options{
		Supervisor: s.supervisor, Client: c, Namespace: home, Now: func() time.Time { return s.now },
		Config: &rest.Config{Host: "https://127.0.0.1:16443", TLSClientConfig: rest.TLSClientConfig{
			CAData: []byte("authority"),
		}},
	})
	return s
}

func program(kind, name string) runtime.Workload {
	api := v1.GroupVersion.String()
	return runtime.Workload{
		Owner: plan.Requester{
			Revision: plan.Owner{APIVersion: api, Kind: v1.RevisionKind(kind), Name: name + "-1", UID: "r"},
			Package:  plan.Owner{APIVersion: api, Kind: kind, Name: name, UID: "p"},
		},
		Namespace: home, Origin: fetch.Plain(oci.MustParseReference("registry.example.org/" + name + ":v1")),
		Digest: oci.DigestOf([]byte(name)),
	}
}

func (s *testEnv) run(t *testing.T, p runtime.Workload) runtime.State {
	t.Helper()
	state, err := s.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// A program finds the API server as in a pod. Its token is renewed after four fifths of its
// lifetime, and not before.
func TestTokens(t *testing.T) {
	s := newTestEnv()
	p := program(v1.ProviderKind, "hello")
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-time.Minute)}
	state := s.run(t, p)
	if want := 48 * time.Minute; !state.Available || state.Again != want {
		t.Errorf("%+v, want to look again after %s", state, want)
	}
	first := s.supervisor.last()
	for path, want := range map[string]string{"token": "token-1", "ca.crt": "authority", "namespace": home} {
		if got := string(first.Files[accountFolder+"/"+path]); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if first.Env["KUBERNETES_SERVICE_HOST"] != "127.0.0.1" || first.Env["KUBERNETES_SERVICE_PORT"] != "16443" ||
		first.Env["KUBECONFIG"] != accountFolder+"/kubeconfig" {
		t.Errorf("environment: %v", first.Env)
	}
	if first.Env["PROVIDER_NAME"] != "hello" || first.Env["REVISION_NAME"] != "hello-1" ||
		first.Env["POD_NAMESPACE"] != home {
		t.Errorf("environment: %v", first.Env)
	}
	s.now = s.now.Add(47 * time.Minute)
	s.run(t, p)
	if s.tokens != 1 {
		t.Errorf("%d tokens before the first is due", s.tokens)
	}
	s.now = s.now.Add(2 * time.Minute)
	s.run(t, p)
	if got := string(s.supervisor.last().Files[accountFolder+"/token"]); got != "token-2" {
		t.Errorf("the token is %q", got)
	}
}

// The states that a process goes through, and that none of them changes with every
// attempt.
func TestStates(t *testing.T) {
	s := newTestEnv()
	p := program(v1.ProviderKind, "hello")
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now}
	if state := s.run(t, p); state.Available || state.Reason != runtime.ReasonStarting || state.Again != defaultSettle {
		t.Errorf("started: %+v", state)
	}
	ended := &sandbox.Exit{Code: 7, Reason: "it ended with exit code 7"}
	s.supervisor.status = sandbox.Status{LastExit: ended, Restarts: 1}
	down := s.run(t, p)
	if down.Available || down.Reason != runtime.ReasonCrashed || !strings.Contains(down.Message, "exit code 7") {
		t.Errorf("ended: %+v", down)
	}
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now, LastExit: ended, Restarts: 2}
	if up := s.run(t, p); up.Message != down.Message || up.Reason != down.Reason {
		t.Errorf("started again: %+v, before %+v", up, down)
	}
	s.supervisor.status.Restarts = 3
	if loop := s.run(t, p); loop.Reason != runtime.ReasonCrashLoop {
		t.Errorf("restarted three times: %+v", loop)
	}
	s.now = s.now.Add(time.Second + defaultSettle)
	if state := s.run(t, p); state.Available || state.Reason != runtime.ReasonNotServing {
		t.Errorf("it does not answer on its health port: %+v", state)
	}
	// Its health port cannot be configured.
	s.now = s.now.Add(probeLimit)
	if state := s.run(t, p); !state.Available {
		t.Errorf("it has run for long enough: %+v", state)
	}
}

// The settle time is minReadySeconds where a configuration sets it.
func TestSettleTimeOfAConfiguration(t *testing.T) {
	s := newTestEnv()
	p := program(v1.FunctionKind, "hello")
	p.Config = &v1beta1.DeploymentRuntimeConfig{}
	p.Config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{MinReadySeconds: 60}}
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-defaultSettle)}
	if state := s.run(t, p); state.Reason != runtime.ReasonStarting || state.Again != time.Minute-defaultSettle {
		t.Errorf("state %+v, want one that waits for the rest of a minute", state)
	}
}

// The runtime waits for missing objects that its configuration names, as in a cluster.
func TestMissingObjectsAreWaitedFor(t *testing.T) {
	s := newTestEnv()
	p := program(v1.ProviderKind, "hello")
	p.Config = &v1beta1.DeploymentRuntimeConfig{}
	pod := corev1.PodSpec{ServiceAccountName: "other", Containers: []corev1.Container{{
		Name: manifests.Container, EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
		}}},
	}}}
	p.Config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{
		Template: corev1.PodTemplateSpec{Spec: pod},
	}}
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-time.Minute)}
	if _, err := s.Run(t.Context(), p); !errors.Is(err, manifests.ErrPrivileges) {
		t.Errorf("a ServiceAccount that xpkg did not create: %v", err)
	}
	s.objects.Privileges = []manifests.Privilege{manifests.ServiceAccount}
	for _, o := range []client.Object{&corev1.ServiceAccount{ObjectMeta: named("other")}, &corev1.Secret{
		ObjectMeta: named("settings"),
	}} {
		state := s.run(t, p)
		if state.Available || state.Reason != reasonMissing || !strings.Contains(state.Message, o.GetName()) ||
			state.Again == 0 {
			t.Errorf("without %s: %+v", o.GetName(), state)
		}
		if err := s.opts.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if state := s.run(t, p); !state.Available {
		t.Errorf("with both: %+v", state)
	}
}

// A ServiceAccount that another client deletes is created again, and the process gets a token of the new one.
func TestDeletedAccountIsRestored(t *testing.T) {
	s := newTestEnv()
	p := program(v1.ProviderKind, "hello")
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-time.Minute)}
	if state := s.run(t, p); !state.Available {
		t.Errorf("at first: %+v", state)
	}
	if err := s.opts.Client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: named("hello-1")}); err != nil {
		t.Fatal(err)
	}
	s.uid = "another"
	state := s.run(t, p)
	if state.Available || state.Reason != runtime.ReasonAccountRestored || !strings.Contains(state.Message, "hello-1") ||
		state.Again == 0 {
		t.Errorf("after its deletion: %+v", state)
	}
	if got := string(s.supervisor.last().Files[accountFolder+"/token"]); got != "token-2" {
		t.Errorf("the token is %q", got)
	}
	if state := s.run(t, p); !state.Available || s.tokens != 2 {
		t.Errorf("at last: %+v, %d tokens", state, s.tokens)
	}
}

// A process has neither the ServiceAccount nor the Service nor the EndpointSlice of another package.
func TestNamesOfOtherPackagesAreRefused(t *testing.T) {
	steals := map[string]v1beta1.DeploymentRuntimeConfigSpec{
		"ServiceAccount": {ServiceAccountTemplate: &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{
			Name: new("victim-1"),
		}}},
		"Service":       {ServiceTemplate: &v1beta1.ServiceTemplate{Metadata: &v1beta1.ObjectMeta{Name: new("victim")}}},
		"EndpointSlice": {},
	}
	for kind, config := range steals {
		t.Run(kind, func(t *testing.T) {
			s := newTestEnv()
			s.opts.Address, s.opts.Images = "192.0.2.1", images{}
			s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-time.Hour)}
			s.run(t, program(v1.ProviderKind, "victim"))
			if kind == "EndpointSlice" {
				slice := &discoveryv1.EndpointSlice{ObjectMeta: named("evil-process"), AddressType: discoveryv1.AddressTypeIPv4}
				if err := s.opts.Client.Create(t.Context(), slice); err != nil {
					t.Fatal(err)
				}
			}
			evil := program(v1.ProviderKind, "evil")
			if kind == "Service" {
				s.run(t, evil) // The check before a start would find it, too.
			}
			evil.Config = &v1beta1.DeploymentRuntimeConfig{ObjectMeta: metav1.ObjectMeta{Name: "steal"}, Spec: config}
			want := deployment.ErrNameConflict
			if kind == "ServiceAccount" {
				want = manifests.ErrPrivileges
			}
			for range 2 {
				if kind != "EndpointSlice" {
					if err := s.Obtain(t.Context(), evil); !errors.Is(err, want) {
						t.Errorf("obtain: %v", err)
					}
				}
				if _, err := s.Run(t.Context(), evil); !errors.Is(err, want) {
					t.Errorf("run: %v", err)
				}
			}
			account := &corev1.ServiceAccount{}
			if err := s.opts.Client.Get(t.Context(), client.ObjectKey{Namespace: home, Name: "victim-1"}, account); err != nil ||
				len(account.OwnerReferences) != 1 {
				t.Errorf("owners %v, %v", account.OwnerReferences, err)
			}
		})
	}
}

// A configuration that needs a node is refused before anything is read, written or started.
func TestFeaturesOfNodesAreRefusedFirst(t *testing.T) {
	s := newTestEnv()
	p := program(v1.ProviderKind, "hello")
	p.Config = &v1beta1.DeploymentRuntimeConfig{}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: manifests.Container, Env: []corev1.EnvVar{
		{Name: "LIMIT", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{
			Resource: "limits.cpu",
		}}},
	}}}}
	p.Config.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{
		Template: corev1.PodTemplateSpec{Spec: pod},
	}}
	if err := s.Obtain(t.Context(), p); !errors.Is(err, manifests.ErrNotForProcesses) {
		t.Errorf("Obtain: %v, want NotForProcesses", err)
	}
	if _, err := s.Run(t.Context(), p); !errors.Is(err, manifests.ErrNotForProcesses) {
		t.Errorf("Run: %v, want NotForProcesses", err)
	}
	if s.tokens != 0 {
		t.Errorf("%d tokens were requested", s.tokens)
	}
}

// images is one image for all digests.
type images sandbox.Root

func (i images) Image(context.Context, fetch.Origin, oci.Digest) (sandbox.Root, error) {
	return sandbox.Root(i), nil
}

// The program that is checked is the one that is started: with the variables of the
// configuration in its path, and with its search path.
func TestObtainChecksTheExpandedCommand(t *testing.T) {
	s := newTestEnv()
	root := t.TempDir()
	// The file is executable.
	if err := errors.Join(
		os.Mkdir(filepath.Join(root, "opt"), 0o755), os.WriteFile(filepath.Join(root, "opt", "hello"), nil, 0o755),
	); err != nil {
		t.Fatal(err)
	}
	s.opts.Images = images{Path: root, Config: unpack.RuntimeConfig{Entrypoint: []string{"hello"}}}
	variable := func(name, value string) []corev1.EnvVar { return []corev1.EnvVar{{Name: name, Value: value}} }
	for name, test := range map[string]struct {
		container corev1.Container
		want      error
	}{
		"variable": {corev1.Container{Command: []string{"$(FOLDER)/hello"}, Env: variable("FOLDER", "/opt")}, nil},
		"another variable": {
			corev1.Container{Command: []string{"$(FOLDER)/hello"}, Env: variable("FOLDER", "/absent")}, runtime.ErrNoProgram,
		},
		"escaped": {
			corev1.Container{Command: []string{"$$(FOLDER)/hello"}, Env: variable("FOLDER", "/opt")}, runtime.ErrNoProgram,
		},
		"search path":    {corev1.Container{Env: variable("PATH", "/opt")}, nil},
		"no search path": {corev1.Container{}, runtime.ErrNoProgram},
		"missing Secret": {corev1.Container{Command: []string{"$(FOLDER)/hello"}, EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		}}, nil},
	} {
		test.container.Name = manifests.Container
		p := program(v1.ProviderKind, "hello")
		p.Config = configured(test.container)
		if err := s.Obtain(t.Context(), p); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

// A provider with a health port reports its own readiness.
func TestHealthOfAProvider(t *testing.T) {
	s := newTestEnv()
	p := program(v1.ProviderKind, "hello")
	answer := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
	defer server.Close()
	p.Config = configured(corev1.Container{Name: manifests.Container, Env: []corev1.EnvVar{{
		Name: healthVariable, Value: server.Listener.Addr().String(),
	}}})
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-time.Hour)}
	if state := s.run(t, p); state.Available || !strings.Contains(state.Message, "503") {
		t.Errorf("not ready: %+v", state)
	}
	answer = http.StatusOK
	if state := s.run(t, p); !state.Available {
		t.Errorf("ready: %+v", state)
	}
	if got := s.supervisor.last().Env[healthVariable]; got != server.Listener.Addr().String() {
		t.Errorf("the configuration was overwritten by %s", got)
	}
}

// A function is available when it serves TLS, and has an endpoint.
func TestHealthOfAFunction(t *testing.T) {
	s := newTestEnv()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.EnableHTTP2 = true
	// The server requires a client certificate, which the probe does not have.
	secure.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
	secure.StartTLS()
	defer secure.Close()
	certificate := &corev1.Secret{ObjectMeta: named("tls"), Data: map[string][]byte{
		"tls.crt": []byte("c"), "tls.key": []byte("k"), "ca.crt": []byte("a"),
	}}
	if err := s.opts.Client.Create(t.Context(), certificate); err != nil {
		t.Fatal(err)
	}
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-time.Hour)}
	for address, available := range map[string]bool{plain.Addr().String(): false, secure.Listener.Addr().String(): true} {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		p := program(v1.FunctionKind, "greet")
		p.ServerSecret = "tls"
		p.Config = configured(corev1.Container{Name: manifests.Container, Ports: []corev1.ContainerPort{{
			Name: manifests.GRPCPort, ContainerPort: int32(number),
		}}})
		state := s.run(t, p)
		if state.Available != available || available && state.Endpoint != "dns:///localhost:"+port {
			t.Errorf("%s: %+v, want available %t", address, state, available)
		}
	}
}

// Each runtime has its own ports. The first function keeps the default port, and the others
// get theirs with a flag.
func TestPortsOfRuntimes(t *testing.T) {
	s := newTestEnv()
	seen := map[string]bool{}
	flags := 0
	for _, name := range []string{"a", "b", "c"} {
		s.run(t, program(v1.ProviderKind, "provider-"+name))
		env := s.supervisor.last().Env
		for _, variable := range []string{metricsVariable, healthVariable, webhookVariable} {
			port := env[variable][strings.LastIndex(env[variable], ":")+1:]
			if port == "" || seen[port] {
				t.Errorf("%s is %q", variable, env[variable])
			}
			if n, err := strconv.Atoi(port); err != nil || n < ports.Lowest || n > ports.Highest {
				t.Errorf("%s is %q, which another process may get while the runtime restarts", variable, env[variable])
			}
			seen[port] = true
		}
		for port, variable := range map[int]string{
			8080: metricsVariable, 8081: healthVariable, manifests.ServiceNumber: webhookVariable,
		} {
			if to := s.supervisor.last().Ports[port]; !strings.HasSuffix(":"+env[variable], ":"+strconv.Itoa(to)) {
				t.Errorf("port %d leads to %d, and %s is %q", port, to, variable, env[variable])
			}
		}
		s.run(t, program(v1.FunctionKind, "function-"+name))
		if i := slices.IndexFunc(
			s.supervisor.last().MoreArgs, func(a string) bool { return strings.HasPrefix(a, addressFlag+"=:") },
		); i >= 0 {
			flags++
			seen[strings.TrimPrefix(s.supervisor.last().MoreArgs[i], addressFlag+"=:")] = true
		}
	}
	// Something else on this machine may have the usual port.
	if flags < 2 {
		t.Errorf("%d functions were told a port", flags)
	}
	before := s.supervisor.last()
	s.run(t, program(v1.FunctionKind, "function-c"))
	if after := s.supervisor.last(); !slices.Equal(before.MoreArgs, after.MoreArgs) {
		t.Errorf("the ports have changed: %v, then %v", before.MoreArgs, after.MoreArgs)
	}
}

// The Service moves to a new version when it serves, and not before.
func TestServiceMovesWhenTheNewVersionServes(t *testing.T) {
	s := newTestEnv()
	s.opts.Address = "192.0.2.1"
	one, two := program(v1.ProviderKind, "hello"), program(v1.ProviderKind, "hello")
	two.Owner.Revision.Name = "hello-2"
	endpoint := func() int32 {
		t.Helper()
		slice := &discoveryv1.EndpointSlice{}
		if err := s.opts.Client.Get(
			t.Context(), client.ObjectKey{Namespace: home, Name: "hello-process"}, slice,
		); err != nil {
			t.Fatal(err)
		}
		if got := slice.Endpoints[0].Addresses[0]; got != s.opts.Address ||
			slice.Labels[discoveryv1.LabelServiceName] != "hello" {
			t.Errorf("the Service %s leads to %s", slice.Labels[discoveryv1.LabelServiceName], got)
		}
		return *slice.Ports[0].Port
	}
	s.run(t, one)
	first := endpoint()
	service := &corev1.Service{}
	if err := s.opts.Client.Get(t.Context(), client.ObjectKey{Namespace: home, Name: "hello"}, service); err != nil ||
		service.Spec.Selector != nil {
		t.Errorf("the Service selects %v, %v", service.Spec.Selector, err)
	}
	s.run(t, two)
	if got := endpoint(); got != first {
		t.Errorf("the Service leads to port %d before the new version answers", got)
	}
	s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-time.Hour)}
	s.run(t, two)
	if got := endpoint(); got == first {
		t.Error("the Service does not lead to the new version")
	}
}

// serving is a TLS server with a certificate for a name.
func serving(t *testing.T, name string) *httptest.Server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// A provider that reads no variable for its webhook port serves on the default port. The Service leads there if the
// provider does not serve on the assigned port, and if the server on the default port is that of the package.
func TestPortOfWebhooks(t *testing.T) {
	own, foreign, second := serving(t, "hello."+home+".svc"), serving(t, "other."+home+".svc"),
		serving(t, "hello."+home+".svc")
	port := func(server *httptest.Server) int { return server.Listener.Addr().(*net.TCPAddr).Port }
	for name, tc := range map[string]struct {
		defaultPort, configured int
		want                    int // 0 is the assigned port.
	}{
		"TheDefaultPortOfThePackage":         {defaultPort: port(own), want: port(own)},
		"TheDefaultPortOfAnotherPackage":     {defaultPort: port(foreign)},
		"TheAssignedPortTakesPrecedence":     {defaultPort: port(own), configured: port(second), want: port(second)},
		"AnotherServerOnTheAssignedPort":     {defaultPort: port(own), configured: port(foreign), want: port(own)},
		"NothingListensOnEitherOfTheirPorts": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv()
			s.opts.Address, s.defaultPort = "192.0.2.1", tc.defaultPort
			s.supervisor.status = sandbox.Status{Running: true, Since: s.now.Add(-time.Hour)}
			p := program(v1.ProviderKind, "hello")
			if tc.configured != 0 {
				p.Config = configured(corev1.Container{Name: manifests.Container, Env: []corev1.EnvVar{
					{Name: webhookVariable, Value: strconv.Itoa(tc.configured)}, {Name: metricsVariable, Value: ":8080"},
				}})
			}
			s.run(t, p)
			if to := s.supervisor.last().Ports[8080]; to == 0 || (to == 8080) != (tc.configured != 0) {
				t.Errorf("the port of metrics leads to %d", to)
			}
			slice := &discoveryv1.EndpointSlice{}
			if err := s.opts.Client.Get(
				t.Context(), client.ObjectKey{Namespace: home, Name: "hello-process"}, slice,
			); err != nil {
				t.Fatal(err)
			}
			variable, err := strconv.Atoi(s.supervisor.last().Env[webhookVariable])
			if err != nil {
				t.Fatal(err)
			}
			if got := int(*slice.Ports[0].Port); got != cmp.Or(tc.want, variable) {
				t.Errorf("the Service leads to port %d, want %d", got, cmp.Or(tc.want, variable))
			}
			if tc.want != port(own) {
				return
			}
			// The variable, which would restart the process, and the endpoint stay while the process restarts.
			s.defaultPort = 0
			s.run(t, p)
			if err := s.opts.Client.Get(t.Context(), client.ObjectKeyFromObject(slice), slice); err != nil ||
				int(*slice.Ports[0].Port) != tc.want {
				t.Errorf("the Service leads to port %d, %v", *slice.Ports[0].Port, err)
			}
			if got := s.supervisor.last().Env[webhookVariable]; got != strconv.Itoa(variable) {
				t.Errorf("the variable has changed from %d to %s", variable, got)
			}
		})
	}
}

// Revisions of one package are known to each other until they are stopped.
func TestRevisionsOfAPackageAreListedUntilStopped(t *testing.T) {
	s := newTestEnv()
	one, two := program(v1.ProviderKind, "hello"), program(v1.ProviderKind, "hello")
	two.Owner.Revision.Name = "hello-2"
	s.run(t, one)
	other := program(v1.FunctionKind, "hello")
	other.Config = &v1beta1.DeploymentRuntimeConfig{Spec: v1beta1.DeploymentRuntimeConfigSpec{
		ServiceAccountTemplate: &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Name: new("function")}},
	}}
	s.run(t, other)
	others, err := s.Others(t.Context(), two.Owner)
	if err != nil || len(others) != 1 || others[0].Name != "hello-1" || others[0].Kind != v1.ProviderRevisionKind {
		t.Fatalf("others: %v, %v", others, err)
	}
	if gone, err := s.Stop(t.Context(), others[0]); !gone || err != nil {
		t.Fatalf("gone %t, %v", gone, err)
	}
	if others, err := s.Others(t.Context(), two.Owner); err != nil || len(others) != 0 {
		t.Errorf("others: %v, %v", others, err)
	}
}

func configured(c corev1.Container) *v1beta1.DeploymentRuntimeConfig {
	d := &v1beta1.DeploymentRuntimeConfig{}
	d.Spec.DeploymentTemplate = &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{c}},
	}}}
	return d
}
