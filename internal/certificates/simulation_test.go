package certificates

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/clock"
)

const ns = "crossplane-system"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const day = 24 * time.Hour

// wanted are the certificates of a provider and of a function.
var wanted = []Requirement{
	{Secret: v1.TLSServerSecretName("provider-a"), Usage: Server, DNSNames: ServerNames("provider-a", ns)},
	{Secret: v1.TLSClientSecretName("provider-a"), Usage: Client, DNSNames: []string{"provider-a-0123456789ab"}},
	{Secret: v1.TLSServerSecretName("function-b"), Usage: Server, DNSNames: ServerNames("function-b", ns)},
	{Secret: v1.TLSClientSecretName("crossplane"), Usage: Client, DNSNames: []string{"crossplane"}},
}

// version is the content of a Secret for some time.
type version struct {
	data map[string][]byte
	// until is the time of its replacement; zero for the current content.
	until time.Time
}

// simulation is a cluster with runtimes. A runtime uses the current content of its Secret, or any
// content of the last Overlap, because files and caches follow late.
type simulation struct {
	t       testing.TB
	client  client.WithWatch
	overlap time.Duration
	clock   *clock.Clock

	mu       sync.Mutex
	versions map[string][]version
	reads    int
	lists    int
	writes   int
	// fail is called before and after each write.
	fail func(write int, made bool) error
	// before runs before a write, and may make other writes.
	before func()
	// talked contains the pairs of certificates between which a connection was made.
	talked map[[2]string]bool
}

var errCrash = errors.New("the process was killed")

func newSimulation(t testing.TB, secrets ...client.Object) *simulation {
	w := &simulation{
		t: t, overlap: time.Hour, clock: clock.New(), versions: map[string][]version{}, talked: map[[2]string]bool{},
	}
	w.client = interceptor.NewClient(fake.NewClientBuilder().WithObjects(secrets...).Build(), interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			w.mu.Lock()
			w.reads++
			w.mu.Unlock()
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			w.mu.Lock()
			w.lists++
			w.mu.Unlock()
			return c.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write(o, func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return w.write(o, func() error { return c.Update(ctx, o, opts...) })
		},
	})
	for _, s := range secrets {
		w.record(s.(*corev1.Secret))
	}
	return w
}

// write writes, unless the process ends before it, and then checks the versions in use.
func (w *simulation) write(o client.Object, do func() error) error {
	w.mu.Lock()
	w.writes++
	n, fail, before := w.writes, w.fail, w.before
	w.mu.Unlock()
	if before != nil {
		before()
	}
	if fail != nil {
		if err := fail(n, false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	w.record(o.(*corev1.Secret))
	if fail != nil {
		return fail(n, true)
	}
	return nil
}

func (w *simulation) record(s *corev1.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.versions[s.Name]
	if len(all) > 0 && all[len(all)-1].until.IsZero() {
		all[len(all)-1].until = w.clock.Now()
	}
	w.versions[s.Name] = append(all, version{data: s.DeepCopy().Data})
}

func (w *simulation) store() *Store {
	return &Store{Client: w.client, Namespace: ns, Now: w.clock.Now, Random: rand.Reader, Overlap: w.overlap}
}

// ensure calls Ensure, which must succeed.
func (w *simulation) ensure(want ...Requirement) (map[string]Issued, time.Time) {
	w.t.Helper()
	issued, next, err := w.store().Ensure(w.t.Context(), want)
	if err != nil {
		w.t.Fatal(err)
	}
	return issued, next
}

func (w *simulation) secret(name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: ns, Name: name}, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// edit changes a Secret as another client would.
func (w *simulation) edit(name string, change func(*corev1.Secret)) {
	w.t.Helper()
	s := w.secret(name)
	change(s)
	if err := w.client.Update(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

// inUse returns the versions of a Secret that a runtime may use.
func (w *simulation) inUse(name string) []version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.versions[name]), func(v version) bool {
		return !v.until.IsZero() && !w.clock.Now().Before(v.until.Add(w.overlap))
	})
}

// connectAll fails unless each server and each client can communicate, with any versions
// of their Secrets in use, and each client of webhooks can verify each server.
func (w *simulation) connectAll(want []Requirement) {
	w.t.Helper()
	now := w.clock.Now()
	var servers, clients []version
	for _, x := range want {
		if x.Usage == Server {
			servers = append(servers, w.inUse(x.Secret)...)
		} else {
			clients = append(clients, w.inUse(x.Secret)...)
		}
	}
	for _, s := range servers {
		for _, c := range clients {
			w.verify(s, c.data[KeyBundle], x509.ExtKeyUsageServerAuth, now)
			w.verify(c, s.data[KeyBundle], x509.ExtKeyUsageClientAuth, now)
			w.handshake(s, c, now)
		}
		for _, root := range w.inUse(RootSecret) {
			ca := readCA(&corev1.Secret{Data: root.data}, now)
			w.verify(s, bundlePEM(ca.Bundle(now)), x509.ExtKeyUsageServerAuth, now)
		}
	}
}

func (w *simulation) verify(v version, bundle []byte, usage x509.ExtKeyUsage, now time.Time) {
	w.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := firstCertificate(v.data[KeyCertificate]).
		Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		w.t.Fatalf("at %s a certificate is not trusted: %v", now, err)
	}
}

// handshake lets two programs speak over mutual TLS, once for each pair.
func (w *simulation) handshake(server, clientSide version, now time.Time) {
	w.t.Helper()
	pair := [2]string{string(server.data[KeyCertificate]) +
		string(server.data[KeyBundle]), string(clientSide.data[KeyCertificate]) + string(clientSide.data[KeyBundle])}
	if w.talked[pair] {
		return
	}
	w.talked[pair] = true
	if err := connect(server.data, clientSide.data, now); err != nil {
		w.t.Fatalf("at %s a server and a client cannot talk: %v", now, err)
	}
}

// connect is one call over mutual TLS, as between Crossplane and a function.
func connect(server, clientSide map[string][]byte, now time.Time) error {
	pair := func(data map[string][]byte) (tls.Certificate, *x509.CertPool, error) {
		c, err := tls.X509KeyPair(data[KeyCertificate], data[keyPrivate])
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(data[KeyBundle])
		return c, pool, err
	}
	serverCert, clientCAs, err := pair(server)
	if err != nil {
		return err
	}
	clientCert, roots, err := pair(clientSide)
	if err != nil {
		return err
	}
	at := func() time.Time { return now }
	name := firstCertificate(server[KeyCertificate]).DNSNames[0]
	here, there := net.Pipe()
	s := tls.Server(here, &tls.Config{
		Certificates: []tls.Certificate{serverCert}, ClientCAs: clientCAs, ClientAuth: tls.RequireAndVerifyClientCert,
		Time: at, MinVersion: tls.VersionTLS12,
	})
	c := tls.Client(there, &tls.Config{
		Certificates: []tls.Certificate{clientCert}, RootCAs: roots, ServerName: name, Time: at, MinVersion: tls.VersionTLS12,
	})
	done := make(chan error, 1)
	go func() {
		_, err := s.Write([]byte("x"))
		done <- errors.Join(err, here.Close())
	}()
	_, err = c.Read(make([]byte, 1))
	return errors.Join(err, <-done, there.Close())
}

func secretOf(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: data}
}

// years advances the clock to an end, does due work on time, and checks every connection at
// each moment.
func (w *simulation) years(end time.Time, want []Requirement, ensure func() (time.Time, error)) {
	w.t.Helper()
	for w.clock.Now().Before(end) {
		next, err := ensure()
		if err != nil {
			w.t.Fatal(err)
		}
		if !next.After(w.clock.Now()) {
			w.t.Fatalf("the next call is at %s, and now is %s", next, w.clock.Now())
		}
		w.connectAll(want)
		// Just before the next due time, nothing may change.
		if before := next.Add(-time.Second); before.After(w.clock.Now()) {
			w.clock.Set(before)
			w.connectAll(want)
		}
		w.clock.Set(next)
		w.connectAll(want)
	}
}
