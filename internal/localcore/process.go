package localcore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/certificates"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/ports"
	"github.com/xpkg-dev/xpkg/internal/runtime/sandbox"
)

// Names of the processes of core, and of their logs.
const (
	processName = "crossplane"
	initName    = "crossplane-init"
)

// Folders with the files of a process.
const (
	crdMount     = "/xpkg/crds"
	serverFolder = "/tls/server"
	clientFolder = "/tls/client"
)

// listeners are the ports on which core listens. They are kept while the control plane runs.
type listeners struct{ webhook, metrics, health int }

// chooseListeners returns free ports.
func chooseListeners() (listeners, error) {
	var l listeners
	var open []net.Listener
	var failed error
	for _, port := range []*int{&l.webhook, &l.metrics, &l.health} {
		listener, err := ports.Listen("")
		if err != nil {
			failed = err
			break
		}
		open = append(open, listener)
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	for _, listener := range open {
		failed = errors.Join(failed, listener.Close())
	}
	if failed != nil {
		return listeners{}, fmt.Errorf("find free ports for Crossplane core: %w", failed)
	}
	return l, nil
}

// healthURL returns the URL of the readiness check.
func (l listeners) healthURL() string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(l.health)) + "/readyz"
}

// initSpec returns the process of the initialization of core.
func (c *Core) initSpec(files map[string][]byte, crds []manifest, webhooks bool) (sandbox.Spec, error) {
	env, err := c.environment()
	if err != nil {
		return sandbox.Spec{}, err
	}
	maps.Copy(env, map[string]string{
		"CRDS_PATH": crdMount, "TLS_CA_SECRET_NAME": v1.RootCASecretName, "TLS_SERVER_SECRET_NAME": serverSecret,
		"TLS_CLIENT_SECRET_NAME": clientSecret,
		// The initialization of a core such as v2.0.2 reads the second name only, although its Helm chart sets the first one.
		"ENABLE_WEBHOOKS": strconv.FormatBool(webhooks), "WEBHOOK_ENABLED": strconv.FormatBool(webhooks),
	})
	if webhooks {
		maps.Copy(env, map[string]string{
			"WEBHOOK_SERVICE_NAME": webhookName, "WEBHOOK_SERVICE_NAMESPACE": c.opts.Namespace,
			"WEBHOOK_SERVICE_PORT": strconv.Itoa(webhookNumber),
		})
	}
	files = maps.Clone(files)
	// The folder must exist, also without a CRD.
	files[crdMount+"/none.yaml"] = nil
	for _, crd := range crds {
		files[crdMount+"/"+crd.name] = crd.content
	}
	// The Helm chart of core passes the same activation by default.
	return c.spec(initName, []string{"core", "init", "--activation=*"}, env, files), nil
}

// startSpec returns the process of core. Core reads the certificate of a client only once, and is restarted with a new
// one.
func (c *Core) startSpec(files map[string][]byte) (sandbox.Spec, error) {
	env, err := c.environment()
	if err != nil {
		return sandbox.Spec{}, err
	}
	certificate := sha256.New()
	for _, key := range []string{corev1.TLSCertKey, certificates.KeyBundle} {
		certificate.Write(files[clientFolder+"/"+key])
	}
	maps.Copy(env, map[string]string{
		"TLS_SERVER_SECRET_NAME": serverSecret, "TLS_SERVER_CERTS_DIR": serverFolder,
		"TLS_CLIENT_SECRET_NAME": clientSecret, "TLS_CLIENT_CERTS_DIR": clientFolder,
		// Core does not create the folder, and reads the content of packages again and again without it.
		"XPKG_CACHE_DIR": "/tmp", "XPKG_CLIENT_CERTIFICATE": hex.EncodeToString(certificate.Sum(nil)[:8]),
	})
	args := append([]string{
		"core", "start", crossplane.ExternalRuntime, "--webhook-port=" + strconv.Itoa(c.listeners.webhook),
		"--metrics-port=" + strconv.Itoa(c.listeners.metrics), "--health-probe-port=" + strconv.Itoa(c.listeners.health),
	}, c.opts.Args...)
	return c.spec(processName, args, env, files), nil
}

func (c *Core) spec(name string, args []string, env map[string]string, files map[string][]byte) sandbox.Spec {
	return sandbox.Spec{
		Name: name, Origin: c.opts.Image.Origin, Digest: c.opts.Image.Digest, Args: args, Env: env, Files: files,
	}
}

// environment returns the variables of both processes.
func (c *Core) environment() (map[string]string, error) {
	env, err := c.issuer.Variables()
	if err != nil {
		return nil, err
	}
	env["POD_NAMESPACE"], env["POD_SERVICE_ACCOUNT"] = c.opts.Namespace, account
	return env, nil
}

// coreCRDs returns the CRDs in the image of core without those of packages, which belong to the manager. It fails with
// InvalidCore for a file that is not YAML.
func coreCRDs(image fs.FS) ([]manifest, error) {
	all, err := manifestsIn(image, crdFolder)
	if err != nil {
		return nil, err
	}
	var out []manifest
	for _, m := range all {
		var meta metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(m.content, &meta); err != nil {
			return nil, ErrInvalid.New(err, "the file %s/%s of the image is not a CRD", crdFolder, m.name)
		}
		if !strings.HasSuffix(meta.Name, "."+v1.Group) {
			out = append(out, m)
		}
	}
	return out, nil
}
