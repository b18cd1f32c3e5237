package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/registry/annotated"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
)

const (
	// publisherTag is the tag, beside the published index, of the record of the server that publishes in a backend.
	publisherTag = "server"
	// publisherFile has the identity of a server outside of a cluster, in its folder.
	publisherFile = "publisher"
	// releaseTime limits the deletion of the record when a server stops.
	releaseTime = 5 * time.Second

	publisherType       = "application/vnd.xpkg.publisher.v1+json"
	publisherAnnotation = "dev.xpkg.publisher"
	placeAnnotation     = "dev.xpkg.publisher.place"
)

// publisher keeps all but one server from publishing in a backend: the server whose identity is in the record of
// the backend, or all servers of the namespace of a cluster, which have one identity. The check is no lock, because
// a registry does not replace a tag on a condition: of two servers that write the first record at the same moment,
// one is refused at its next publication.
type publisher struct {
	packages *Packages
	backend  string
	log      *slog.Logger
	// claims is nil outside of a cluster. Then file has the identity.
	claims *cluster.Claims
	file   string

	mu sync.Mutex
	id string
	// own is the last record of this server that was seen.
	own atomic.Pointer[oci.Digest]
	// unrecorded means that the backend refuses the record.
	unrecorded atomic.Bool
}

// check fails if another server publishes in the backend.
func (p *publisher) check(ctx context.Context) error {
	if p.unrecorded.Load() {
		return nil
	}
	ref, err := p.packages.reference(indexRepository)
	if err != nil {
		return err
	}
	ref = ref.WithTag(publisherTag)
	id, err := p.identity(ctx)
	if err != nil {
		return err
	}
	if err = p.compare(ctx, ref, id); isMissing(err) {
		if _, err = p.packages.client.Push(ctx, ref, p.record(id)); err == nil {
			err = p.compare(ctx, ref, id)
		}
	}
	if err == nil || isTemporary(ctx, err) && remote.ResponseCode(err) != protocol.CodeDenied {
		return err
	}
	if p.unrecorded.CompareAndSwap(false, true) {
		p.log.Warn("cannot record in the backend that this server publishes in it, so a second server is not noticed; "+
			"allow this server to push there", "repository", p.backend+"/"+indexRepository, "error", err)
	}
	return nil
}

// compare fails if the record is not that of this server.
func (p *publisher) compare(ctx context.Context, ref oci.Reference, id string) error {
	current, err := p.packages.client.Resolve(ctx, ref)
	if own := p.own.Load(); err != nil || own != nil && *own == current.Digest {
		return err
	}
	a, err := p.packages.client.Artifact(ctx, ref.WithDigest(current.Digest))
	if err != nil {
		return err
	}
	kind, annotations, err := annotated.Read(ctx, a)
	switch other := annotations[publisherAnnotation]; {
	case err != nil:
		return err
	case kind != publisherType:
		return remote.ErrTagNotFound.New(nil, "%s is no record of a server", ref)
	case other != id:
		return ErrServer.New(nil, "the server %s (%s) publishes in %s, so this one publishes nothing there",
			other, annotations[placeAnnotation], p.backend).
			WithDo(
				"Use that server, or stop it for good, give this one its identity with %s, and start it again.", p.adopt(other),
			)
	}
	p.own.Store(&current.Digest)
	return nil
}

// adopt returns the command that gives this server an identity.
func (p *publisher) adopt(id string) string {
	if p.claims == nil {
		return "`echo " + wording.ShellWord(id) + " > " + wording.ShellWord(p.file) + "`"
	}
	namespace, name := p.claims.PublisherLease()
	patch := wording.ShellWord(`{"spec":{"holderIdentity":"` + id + `"}}`)
	return fmt.Sprintf("`kubectl patch lease --namespace %s %s --type merge --patch %s`",
		wording.ShellWord(namespace), name, patch)
}

// record returns the record of this server.
func (p *publisher) record(id string) oci.Artifact {
	place := "unknown host"
	if host, err := os.Hostname(); err == nil {
		place = "host " + host
	}
	if p.claims != nil {
		namespace, _ := p.claims.PublisherLease()
		place = "namespace " + namespace + " of a cluster"
	}
	return annotated.New(publisherType, map[string]string{publisherAnnotation: id, placeAnnotation: place})
}

// identity returns the identity of this server, which it reads or creates once.
func (p *publisher) identity(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id != "" {
		return p.id, nil
	}
	if p.claims != nil {
		id, err := p.claims.Publisher(ctx)
		p.id = id
		return id, p.ofCluster(err)
	}
	raw, err := os.ReadFile(p.file)
	if errors.Is(err, fs.ErrNotExist) {
		raw = []byte(rand.Text())
		err = fileutil.ReplaceFile(p.file, fileutil.PrivateMode, raw)
	}
	if err != nil {
		return "", ErrServer.New(err, "cannot use the identity of the server in %s", p.file)
	}
	p.id = strings.TrimSpace(string(raw))
	return p.id, nil
}

// ofCluster returns the error for a request to the API server. Its message is for clients, too, so the log has the
// cause.
func (p *publisher) ofCluster(err error) error {
	if err == nil {
		return nil
	}
	p.log.Error("cannot agree with the other servers in the cluster", "error", err)
	if apierrors.IsForbidden(err) {
		namespace, _ := p.claims.PublisherLease()
		return ErrServer.New(nil, "the ServiceAccount of the server may not use Leases in the namespace %s", namespace).
			WithDo("Give it the Role of the guide \"Run a registry\", section \"Several servers\".")
	}
	return ErrServer.New(nil, "the server cannot agree with others, because its cluster does not answer; try again")
}

// start states at the start of a server which others can publish in the backend, and fails if this one may not use
// its cluster. Everything else is tried again at the next publication.
func (p *publisher) start(ctx context.Context) error {
	if p.claims == nil {
		p.log.Info("this must be the only server in front of the backend, because it does not run in a cluster",
			"backend", p.backend)
	} else if _, err := p.claims.Publisher(ctx); apierrors.IsForbidden(err) {
		return p.ofCluster(err)
	}
	if err := p.check(ctx); err != nil && ctx.Err() == nil {
		p.log.Error("cannot publish in the backend; the next publication tries again", "backend", p.backend, "error", err)
	}
	return nil
}

// release deletes the record of a server outside of a cluster, so that another one can take its place.
func (p *publisher) release() {
	own := p.own.Load()
	if p.claims != nil || own == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	ref, err := p.packages.reference(indexRepository)
	if err == nil {
		err = p.packages.client.Delete(ctx, ref.WithDigest(*own)) // The digest contains the identity.
	}
	if err != nil && !isMissing(err) {
		p.log.Warn("the backend keeps the record of this server, so only a server with its identity can publish there",
			"record", p.backend+"/"+indexRepository+":"+publisherTag, "file", p.file, "error", err)
	}
}

// newPublisher returns the publisher of a server with a backend.
func (s *Server) newPublisher(claims *cluster.Claims) *publisher {
	return &publisher{
		packages: s.packages, backend: s.options.Backend.Host, log: s.log, claims: claims,
		file: filepath.Join(s.options.Dir, publisherFile),
	}
}
