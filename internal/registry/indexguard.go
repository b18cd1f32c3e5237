package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/storage"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// indexGuard selects the states of the published index that a client may read: those of which it may read each package,
// in the rows and in the journal, and each owner of an API group without packages, under the current policy of this
// server. Former states can name packages that are private now, and another server in front of the same registry can
// publish packages that this one hides.
type indexGuard struct {
	packages *Packages
	policy   func() *access.Policy
	log      *slog.Logger
	// corrects means that no other server publishes the index, so that this one replaces a state with private packages.
	corrects bool

	reading keyedmutex.Mutex[oci.Digest]
	mu      sync.Mutex
	// verdicts are the packages of manifests that are not public under a policy. A manifest never changes.
	verdicts map[oci.Digest][]string
	under    *access.Policy
	// reported is the state that was reported last, under a policy.
	reported      oci.Digest
	reportedUnder *access.Policy
}

// mostVerdicts limits the verdicts that are kept.
const mostVerdicts = 10_000

// mayRead reports whether a subject may read a manifest of the repository of the index. Manifests that are not of an
// index have no packages.
func (g *indexGuard) mayRead(ctx context.Context, subject access.Subject, d oci.Digest) (bool, error) {
	policy := g.policy()
	hidden, err := g.hidden(ctx, policy, d)
	if indexer.IsAbsent(err) || errors.Is(err, oci.ErrManifestNotFound) {
		return false, nil // It has just been removed.
	}
	if err != nil {
		if ctx.Err() == nil {
			g.log.Error(
				"a state of the index is not served because its packages cannot be compared with the access configuration",
				"digest", d, "error", err,
			)
		}
		return false, ErrServer.New(nil, "the state of the index cannot be checked; the log of the server has the cause")
	}
	subject = subject.WithoutRequested()
	return !slices.ContainsFunc(hidden, func(name string) bool { return !policy.May(subject, pathOf(name), access.Read) }),
		nil
}

// hidden returns the packages of a state that not every client may read under a policy. It reads the state once for a
// policy.
func (g *indexGuard) hidden(ctx context.Context, policy *access.Policy, d oci.Digest) ([]string, error) {
	if hidden, ok := g.known(policy, d); ok {
		return hidden, nil
	}
	unlock, err := g.reading.Lock(ctx, d)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if hidden, ok := g.known(policy, d); ok {
		return hidden, nil
	}
	names, err := g.read(ctx, d)
	if err != nil {
		return nil, err
	}
	return g.learn(policy, d, names), nil
}

func (g *indexGuard) known(policy *access.Policy, d oci.Digest) (hidden []string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under != policy {
		return nil, false
	}
	hidden, ok = g.verdicts[d]
	return hidden, ok
}

// learn records the packages that a state names. It returns those that not every client may read under a policy.
func (g *indexGuard) learn(policy *access.Policy, d oci.Digest, names []string) []string {
	var hidden []string
	for _, name := range names {
		if policy.Partition(pathOf(name)) != "" {
			hidden = append(hidden, name)
		}
	}
	slices.Sort(hidden)
	hidden = slices.Compact(hidden)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under != policy || len(g.verdicts) >= mostVerdicts {
		g.under, g.verdicts = policy, map[oci.Digest][]string{}
	}
	g.verdicts[d] = hidden
	return hidden
}

// pathOf returns the repository of a package in an index, whatever its host is: the index can have the name of the
// backend, or a former name of this server.
func pathOf(name string) string {
	_, path, _ := strings.Cut(name, "/")
	return path
}

// read returns the names of the packages in a state; none for a manifest that is not of an index.
func (g *indexGuard) read(ctx context.Context, d oci.Digest) ([]string, error) {
	ref, err := g.packages.reference(indexRepository)
	if err != nil {
		return nil, err
	}
	a, err := g.packages.client.Artifact(ctx, ref.WithDigest(d))
	if err != nil {
		return nil, err
	}
	if a.Root().MediaType != oci.MediaTypeOCIManifest {
		return nil, nil
	}
	raw, err := oci.ReadSmall(ctx, a, a.Root(), oci.Limits{Manifest: protocol.LargestManifest})
	if err != nil {
		return nil, err
	}
	m, err := catalog.ParseManifest(raw)
	if errors.Is(err, catalog.ErrNotAnIndex) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := catalog.Open(m, func(d oci.Descriptor) ([]byte, error) { return g.packages.blob(ctx, indexRepository, d) })
	if err != nil {
		return nil, err
	}
	return namesIn(r.Packages(), r.Events(), r.Config().Owners), nil
}

// namesIn returns the names of the packages in rows and in a journal, which also has packages without a row, and of the
// owners of API groups without packages in the rows.
func namesIn(rows []catalog.Package, journal []catalog.Event, owners []catalog.GroupOwner) []string {
	names := make([]string, 0, len(rows))
	for i := range rows {
		names = append(names, rows[i].Repository)
	}
	for i := range journal {
		if name := journal[i].Repository; name != "" {
			names = append(names, name)
		}
	}
	for _, owner := range owners {
		if !slices.ContainsFunc(rows, func(row catalog.Package) bool { return owner.Covers(row.Repository) }) {
			names = append(names, owner.Owner)
		}
	}
	return names
}

// report logs once that the current state is not served to every client. It does nothing for one that is.
func (g *indexGuard) report(ctx context.Context, d oci.Digest) {
	policy := g.policy()
	hidden, err := g.hidden(ctx, policy, d)
	if err != nil || len(hidden) == 0 {
		return
	}
	g.mu.Lock()
	isReported := g.reported == d && g.reportedUnder == policy
	g.reported, g.reportedUnder = d, policy
	g.mu.Unlock()
	switch {
	case isReported:
	case g.corrects:
		g.log.Warn(
			"the published index names packages that are private now; it is not served until the next state is published",
			"packages", len(hidden), "first", hidden[0],
		)
	default:
		g.log.Error("the index in the registry behind this server names packages that the access configuration of this server hides, so this server does not serve it; "+
			"give each server in front of the registry the same access.yaml, or publish an index without these packages with `xpkg index build`",
			"digest", d, "packages", len(hidden), "first", hidden[0])
	}
}

// readIndexManifest serves a manifest of the repository of the index. One that the subject may not read does not exist.
func (s *Server) readIndexManifest(
	w http.ResponseWriter, r *http.Request, api protocol.Request, subject access.Subject,
) {
	forwarded := withPath(r, api)
	for _, name := range []string{"Range", "If-None-Match", "If-Modified-Since"} {
		forwarded.Header.Del(name) // The whole manifest is checked.
	}
	answer := &manifestAnswer{header: http.Header{}}
	s.images.ServeHTTP(answer, forwarded)
	if answer.status >= http.StatusBadRequest {
		answer.send(w)
		return
	}
	d, err := answer.digest(r.Method)
	allowed := false
	if err == nil {
		allowed, err = s.indexGuard.mayRead(r.Context(), subject, d)
	}
	switch {
	case err != nil:
		writeRefusal(w, r, err)
	case allowed:
		answer.send(w)
	default:
		if storage.IsTag(api.Reference) {
			s.indexGuard.report(r.Context(), d)
			s.site.checkPolicy(s.policy())
		}
		s.readNothing(w, r, api)
	}
}

// manifestAnswer records a response with a manifest.
type manifestAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (a *manifestAnswer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *manifestAnswer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

// Write implements [http.ResponseWriter]. It fails for a body that is too large for a manifest.
func (a *manifestAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.body.Len()+len(p) > protocol.LargestManifest {
		return 0, io.ErrShortWrite
	}
	return a.body.Write(p)
}

// digest returns the digest of the manifest: that of the content, and that in the header for a response without it.
func (a *manifestAnswer) digest(method string) (oci.Digest, error) {
	if method == http.MethodHead {
		return oci.ParseDigest(a.header.Get("Docker-Content-Digest"))
	}
	return oci.DigestOf(a.body.Bytes()), nil
}

// send sends the response. An error means that the client has disconnected.
func (a *manifestAnswer) send(w http.ResponseWriter) {
	header := w.Header()
	for name, values := range a.header {
		header[name] = values
	}
	w.WriteHeader(max(a.status, http.StatusOK))
	_, _ = w.Write(a.body.Bytes())
}
