package processruntime

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// accountFolder is the folder with the files of the ServiceAccount in every pod.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// tokenLife is the requested lifetime of a token. A token is renewed after four fifths of its
// lifetime.
const tokenLife = time.Hour

// tokens are the tokens of the ServiceAccounts of runtimes.
type tokens struct {
	client client.Client
	now    func() time.Time

	mu  sync.Mutex
	all map[string]token
}

// token is the token of one runtime.
type token struct {
	value   string
	account types.UID
	renew   time.Time
}

// of returns a token for the runtime of a revision that is not due for renewal. It fails with
// missing if the ServiceAccount does not exist yet.
func (t *tokens) of(ctx context.Context, revision string, account types.NamespacedName) (token, error) {
	sa := &corev1.ServiceAccount{}
	err := t.client.Get(ctx, account, sa)
	if apierrors.IsNotFound(err) {
		return token{}, missing("the runtime needs the ServiceAccount " + account.Name + ", which does not exist yet")
	}
	if err != nil {
		return token{}, fmt.Errorf("read ServiceAccount %s: %w", account.Name, err)
	}
	t.mu.Lock()
	known := t.all[revision]
	t.mu.Unlock()
	if known.account == sa.UID && t.now().Before(known.renew) {
		return known, nil
	}
	seconds := int64(tokenLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	requested := t.now()
	if err := t.client.SubResource("token").Create(ctx, sa, request); err != nil {
		return token{}, fmt.Errorf("get a token of ServiceAccount %s: %w", account.Name, err)
	}
	// The API server may set a shorter or a longer lifetime.
	life := request.Status.ExpirationTimestamp.Sub(requested)
	fresh := token{value: request.Status.Token, account: sa.UID, renew: requested.Add(life * 4 / 5)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[string]token{}
	}
	t.all[revision] = fresh
	return fresh, nil
}

func (t *tokens) forget(revision string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, revision)
}

// inAccountFolder returns the path of a file with which a runtime authenticates.
func inAccountFolder(name string) string { return path.Join(accountFolder, name) }

// identity returns the files with which a runtime finds the API server and authenticates.
func (p *Runtime) identity(t token) (map[string][]byte, error) {
	authority, err := authorityOf(p.opts.Config)
	if err != nil {
		return nil, err
	}
	host, port, err := split(p.opts.Config.Host)
	if err != nil {
		return nil, err
	}
	config, err := kubeconfig("https://"+net.JoinHostPort(host, port), p.opts.Namespace)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		inAccountFolder(corev1.ServiceAccountTokenKey): []byte(t.value), inAccountFolder(corev1.ServiceAccountRootCAKey): authority,
		inAccountFolder(corev1.ServiceAccountNamespaceKey): []byte(p.opts.Namespace), inAccountFolder("kubeconfig"): config,
	}, nil
}

// serverVariables returns the variables with which a runtime finds the API server.
func (p *Runtime) serverVariables() (map[string]string, error) {
	host, port, err := split(p.opts.Config.Host)
	return map[string]string{
		"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, clientcmd.RecommendedConfigPathEnvVar: inAccountFolder("kubeconfig"),
	}, err
}

// kubeconfig returns a kubeconfig file that refers to the token and to the CA as files in its own
// folder, so that it works at any path, and a renewed token is read again.
func kubeconfig(server, namespace string) ([]byte, error) {
	const name = "xpkg"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: corev1.ServiceAccountRootCAKey}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: corev1.ServiceAccountTokenKey}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	c.CurrentContext = name
	return clientcmd.Write(*c)
}

// authorityOf returns the CA certificates for the API server, in PEM.
func authorityOf(c *rest.Config) ([]byte, error) {
	if len(c.CAData) > 0 || c.CAFile == "" {
		return c.CAData, nil
	}
	return os.ReadFile(c.CAFile)
}

// split returns the host and the port of an API server.
func split(server string) (host, port string, err error) {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return "", "", fmt.Errorf("the API server %q has no address that runtimes can reach", server)
	}
	if port = u.Port(); port == "" {
		port = "443"
	}
	return u.Hostname(), port, nil
}
