// Package cluster lets several registry servers in front of one backend agree by the API server of the Kubernetes
// cluster in which they run. The API server is linearizable; a registry cannot even write a tag on a condition.
//
// A server claims a version before it writes the tag of it, and the name of a new repository before it writes its
// first tag. A [Claim] is a Lease whose name is derived from the backend and the version, or the name, in a form
// that is the same for all spellings. The first create decides: all other servers read the value of the winner.
// These invariants hold for a version:
//
//  1. The content of a claim is in the backend, without a tag, before the claim is made.
//  2. A server writes a tag only with the content of the claim, with a permit, and if it has found that the version
//     is not published after it got the permit. The create of a claim gives a permit, and so does an update, which
//     keeps the content.
//  3. A claim is deleted only by the server with its last permit, by a precondition: after the version was
//     published, or if no server can have written anything. A published version stays published: its deletion
//     leaves a status.
//  4. The content of a claim is replaced, by compare and swap, only if it is not in the backend any more and if no
//     permit for it can be in use.
//
// Thus one content wins everywhere: by 2 and 3, a tag is written only while no other content was published or is
// claimed, and a request that the backend applies late writes the same content again. A server that has failed
// blocks no other one: while the content that it claimed is in the backend, any server publishes it; otherwise 4
// applies. Only 4 uses time: a permit ends [writeTime] after the request for it was sent, by the clock of the
// server that uses it, and a claim is replaced once another server has seen it without a change for [abandonedTime]
// by its own clock. No clock is compared with that of another machine, and what remains is a backend that applies a
// request more than half a minute after its client has given up.
//
// For the first tag of a repository, the same holds with the name of the repository in place of the content. The
// tag may be one that can move, which only the server that received it can write, so a claim of a name is always
// replaced by rule 4, without the condition on the backend.
package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/leader"
)

// Config is the access to the cluster in which a server runs.
type Config struct {
	REST *rest.Config
	// Namespace is the namespace of the Leases. Servers in front of one backend have one namespace.
	Namespace string
}

// namespaceFile has the namespace of a Pod (Kubernetes, "Accessing the Kubernetes API from a Pod").
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Detect returns the cluster in which this process runs with the token of a ServiceAccount; nil if there is none.
func Detect() (*Config, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	namespace, err := os.ReadFile(namespaceFile)
	return &Config{REST: config, Namespace: strings.TrimSpace(string(namespace))}, err
}

// Election returns the election of the server that publishes the index in a backend.
func (c *Config) Election(backend, identity string) leader.Election {
	return leader.Election{Namespace: c.Namespace, Name: nameOf("index", backend), Identity: identity}
}

// requestTime limits a request to the API server.
const requestTime = 10 * time.Second

// Claims returns the claims of the servers in front of a backend, of which this one has an identity.
func (c *Config) Claims(backend, identity string, now func() time.Time) (*Claims, error) {
	config := rest.CopyConfig(c.REST)
	config.Timeout, config.QPS = requestTime, -1
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Claims{
		leases: client.Leases(c.Namespace), namespace: c.Namespace, backend: backend, identity: identity, now: now,
		seen: map[string]sighting{},
	}, nil
}

// nameOf returns the name of the Lease for a kind of agreement and the parts that identify it.
func nameOf(kind string, parts ...string) string {
	const hashLength = 16
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return "xpkg-registry-" + kind + "-" + hex.EncodeToString(sum[:hashLength])
}
