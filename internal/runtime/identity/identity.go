// Package identity provides the files and variables with which a process of this machine finds the API server and
// authenticates as a ServiceAccount, as in a pod.
package identity

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// folder is the folder with the files of the ServiceAccount in every pod.
const folder = "/var/run/secrets/kubernetes.io/serviceaccount"

// tokenLife is the requested lifetime of a token. A token is renewed after four fifths of its
// lifetime.
const tokenLife = time.Hour

// Issuer issues the identities of processes. It is safe for concurrent use.
type Issuer struct {
	client    client.Client
	config    *rest.Config
	namespace string
	now       func() time.Time

	mu     sync.Mutex
	tokens map[string]token
}

// NewIssuer returns an issuer of identities in a namespace. The configuration has the address and the CA of the API
// server for processes. Its credentials are not passed on.
func NewIssuer(c client.Client, config *rest.Config, namespace string, now func() time.Time) *Issuer {
	return &Issuer{client: c, config: config, namespace: namespace, now: now, tokens: map[string]token{}}
}

// token is the token of one process.
type token struct {
	value   string
	account types.UID
	renew   time.Time
}

// Files returns the files of the identity of a process by their paths, and the time at which they must be renewed. The
// error is a NotFound error of the API server if the ServiceAccount does not exist.
func (i *Issuer) Files(
	ctx context.Context, process, account string,
) (files map[string][]byte, renew time.Time, err error) {
	t, err := i.token(ctx, process, account)
	if err != nil {
		return nil, time.Time{}, err
	}
	authority, err := authorityOf(i.config)
	if err != nil {
		return nil, time.Time{}, err
	}
	host, port, err := split(i.config.Host)
	if err != nil {
		return nil, time.Time{}, err
	}
	config, err := kubeconfig("https://"+net.JoinHostPort(host, port), i.namespace)
	if err != nil {
		return nil, time.Time{}, err
	}
	return map[string][]byte{
		inFolder(corev1.ServiceAccountTokenKey): []byte(t.value), inFolder(corev1.ServiceAccountRootCAKey): authority,
		inFolder(corev1.ServiceAccountNamespaceKey): []byte(i.namespace), inFolder("kubeconfig"): config,
	}, t.renew, nil
}

// Variables returns the variables with which a process finds the API server.
func (i *Issuer) Variables() (map[string]string, error) {
	host, port, err := split(i.config.Host)
	return map[string]string{
		"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port,
		clientcmd.RecommendedConfigPathEnvVar: inFolder("kubeconfig"),
	}, err
}

// Forget forgets the token of a process that has stopped.
func (i *Issuer) Forget(process string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.tokens, process)
}

// token returns a token for a process that is not due for renewal.
func (i *Issuer) token(ctx context.Context, process, account string) (token, error) {
	sa := &corev1.ServiceAccount{}
	if err := i.client.Get(ctx, types.NamespacedName{Namespace: i.namespace, Name: account}, sa); err != nil {
		return token{}, fmt.Errorf("read ServiceAccount %s: %w", account, err)
	}
	i.mu.Lock()
	known := i.tokens[process]
	i.mu.Unlock()
	if known.account == sa.UID && i.now().Before(known.renew) {
		return known, nil
	}
	seconds := int64(tokenLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	requested := i.now()
	if err := i.client.SubResource("token").Create(ctx, sa, request); err != nil {
		return token{}, fmt.Errorf("get a token of ServiceAccount %s: %w", account, err)
	}
	// The API server may set a shorter or a longer lifetime.
	life := request.Status.ExpirationTimestamp.Sub(requested)
	fresh := token{value: request.Status.Token, account: sa.UID, renew: requested.Add(life * 4 / 5)}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tokens[process] = fresh
	return fresh, nil
}

// inFolder returns the path of a file with which a process authenticates.
func inFolder(name string) string { return path.Join(folder, name) }

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
