package registry

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/keyedmutex"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/internal/registry/cluster"
	"github.com/xpkg-dev/xpkg/internal/registry/limit"
	"github.com/xpkg-dev/xpkg/internal/registry/protocol"
	"github.com/xpkg-dev/xpkg/internal/registry/tokens"
)

// Files and folders in the folder of a server.
const (
	imagesFolder = "registry"
	cacheFolder  = "cache"
	policyFile   = "access.yaml"
	keyFile      = "bearer.key"
)

// Options configure a server.
type Options struct {
	// Dir is the folder of the server.
	Dir string
	// Host is the host, with its port if it has one, under which clients pull packages.
	Host string
	// URL is the address of the server for clients, such as "https://registry.example.org", if a proxy is in front of it.
	// If it is empty, the address of each request is used.
	URL string
	// Backend is the registry with the content; nil stores the content in Dir.
	Backend *BackendOptions
	// GarbageCollection configures the removal of blobs that nothing refers to.
	GarbageCollection GarbageCollection
	// MaxUpload is the maximum size of a blob in bytes.
	MaxUpload int64
	// Indexer builds the index; nil means a LocalIndexer.
	Indexer Indexer
	// Texts adds field names, descriptions and readmes of the newest versions to the index. It costs the base layer of
	// each newest version.
	Texts bool
	// Signer signs the published index; nil publishes it without a signature.
	Signer *indexer.Signer
	// Pages returns the handler of the pages of a site; nil serves none.
	Pages func(*Site, *Packages) (http.Handler, error)
	// Issuers is the client for OIDC issuers; nil means a client without a proxy for loopback addresses.
	Issuers *http.Client
	// Limits are the limits for clients; nil means those for this process.
	Limits *limit.Limits
	Log    *slog.Logger
	// Now returns the time; nil means the system clock.
	Now func() time.Time
}

// GarbageCollection configures the removal of content of a folder that neither a tag nor a referrer needs, while the
// server runs.
type GarbageCollection struct {
	// Every is the time between two collections; zero means 15 minutes.
	Every time.Duration
	// Grace is the time for which new content is kept; zero means an hour.
	Grace time.Duration
}

// Server is a registry server.
type Server struct {
	options    Options
	log        *slog.Logger
	now        func() time.Time
	identifier *Identifier
	policies   *policyFileReader
	images     images
	site       *Site
	packages   *Packages
	emptyList  emptyList
	indexGuard *indexGuard
	indexBlobs *indexBlobs
	issuers    *issuers
	metrics    *metrics
	changing   keyedmutex.Mutex[string]
	limiter    *limit.Limiter
	// publisher and claims are those of a server with a backend. Claims is nil outside of a cluster.
	publisher *publisher
	claims    *cluster.Claims
	// uploads serves uploads within the limits.
	uploads http.Handler
	handler http.Handler
	probing sync.Mutex
	lock    FolderLock
	// id identifies this process among the servers of a cluster.
	id string
	// folder identifies the folder of the content that is locked; nil with a backend.
	folder os.FileInfo
}

// New opens the folder of a server. It creates the folder, and no connection. It fails if another server uses the
// folder.
func New(o Options) (_ *Server, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Issuers == nil {
		o.Issuers = http.DefaultClient
	}
	if err := fileutil.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, ErrServer.New(err, "cannot create %s", o.Dir)
	}
	content := ""
	if o.Backend == nil {
		content = filepath.Join(o.Dir, imagesFolder)
	}
	lock, err := LockFolder(o.Dir, content)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	var folder os.FileInfo
	if content != "" {
		if folder, err = os.Stat(content); err != nil {
			return nil, ErrServer.New(err, "cannot read %s", content)
		}
	}
	key, err := loadKey(filepath.Join(o.Dir, keyFile))
	if err != nil {
		return nil, err
	}
	s := &Server{
		lock: lock, folder: folder, options: o, log: o.Log, now: o.Now,
		identifier: &Identifier{tokens: tokens.Open(o.Dir, o.Now), bearer: &bearerTokens{key: key, now: o.Now}},
		policies:   &policyFileReader{path: filepath.Join(o.Dir, policyFile), log: o.Log, now: time.Now},
		issuers:    newIssuers(o.Issuers, o.Now, o.Log),
		metrics:    newMetrics(),
	}
	s.identifier.policy = s.policy
	if _, err := s.policies.read(); err != nil {
		return nil, err
	}
	if s.images, err = s.openImages(); err != nil {
		return nil, err
	}
	s.limitClients()
	// The indexer reads everything: the partitions of the index keep private packages apart.
	s.packages = NewPackages(o.Host, filepath.Join(o.Dir, cacheFolder), s.images)
	s.packages.digest = s.images.digest
	s.packages.digests, s.packages.remembers = digestsOf(s.images), o.Backend != nil
	s.indexGuard = &indexGuard{packages: s.packages, policy: s.policy, log: s.log, corrects: o.Backend == nil}
	if err := s.openCluster(); err != nil {
		return nil, err
	}
	s.indexBlobs = &indexBlobs{packages: s.packages, guard: s.indexGuard, images: s.images, now: s.now}
	if s.options.Indexer == nil {
		s.options.Indexer = s.newIndexer()
	}
	return s, s.openSite()
}

// newIndexer returns an indexer, which publishes the index of the public packages if the server stores the content
// itself, or if the options ask for it: a registry of another project needs permission for the repository of the index.
func (s *Server) newIndexer() *LocalIndexer {
	x := NewLocalIndexer(s.packages, s.options.Host)
	x.log, x.texts, x.policy = s.log, s.options.Texts, s.policy
	if s.options.Backend != nil {
		x.backend, x.now = s.options.Backend.Host, s.now
		x.recorded = func(partition string) ([]string, error) { return s.site.recorded(partition) }
	}
	if s.publishesIndexIn(indexRepository) {
		x.publication = &publication{
			packages: s.packages, guard: s.indexGuard, now: s.now, signer: s.options.Signer, log: s.log,
		}
		x.publication.publisher = s.publisher
		if b := s.options.Backend; b != nil && b.Cluster != nil {
			x.publication.election = &election{
				cluster: b.Cluster, Election: b.Cluster.Election(b.Host, s.id), next: s.packages.requests, log: s.log,
				elected: func() { s.site.checkAll() },
			}
		}
	}
	return x
}

// publishesIndexIn reports whether a repository is that of an index which the server publishes.
func (s *Server) publishesIndexIn(repository string) bool {
	return repository == indexRepository && (s.options.Backend == nil || s.options.Backend.PublishIndex)
}

// repositories returns the names of the repositories of packages. Only updates of the index call it, one after another.
func (s *Server) repositories(ctx context.Context) ([]string, error) {
	if err := s.checkFolder(); err != nil {
		return nil, err
	}
	all, err := s.images.repositories(ctx)
	if err == nil && s.options.Backend != nil {
		err = s.checkList(ctx, len(all))
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == indexRepository }), err
}

// checkList fails if the backend lists no repositories any more, until it has done so for a while.
func (s *Server) checkList(ctx context.Context, number int) error {
	if x, ok := s.options.Indexer.(*LocalIndexer); ok && number == 0 && !s.emptyList.accepted {
		var err error
		if s.emptyList.listed, err = x.hadPackages(ctx, s.policy().Partitions()); err != nil {
			return err
		}
	}
	return s.emptyList.check(s.options.Backend.Host, "repositories", number, s.now())
}

func (s *Server) openImages() (images, error) {
	if s.options.Backend != nil {
		b, err := openBackend(*s.options.Backend, s.log)
		if err != nil {
			return nil, err
		}
		b.written = s.written
		return b, nil
	}
	store, handler := OpenStore(filepath.Join(s.options.Dir, imagesFolder), s.options.GarbageCollection, s.log)
	return &folder{handler, store}, nil
}

func (s *Server) openSite() error {
	s.site = NewSite(SiteOptions{
		Host: s.options.Host, Dir: filepath.Join(s.options.Dir, cacheFolder), Indexer: s.options.Indexer, Log: s.log,
		Repositories: s.repositories, Policy: s.policy, Now: s.now,
		Identify: func(r *http.Request) access.Subject {
			subject, _ := s.identifier.subject(r)
			return subject
		},
	})
	pages := http.NotFoundHandler()
	if s.options.Pages != nil {
		var err error
		if pages, err = s.options.Pages(s.site, s.packages); err != nil {
			return ErrServer.New(err, "cannot prepare the pages")
		}
	}
	// A browser that has logged in sends its credentials with each request, also with those of the pages of other sites.
	protection := http.NewCrossOriginProtection()
	s.handler = s.metrics.count(recovering(limit.Transfers(s.limiter.Handler(s.client,
		s.kindOf, protection.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch path := r.URL.Path; {
			case path == tokenPath:
				s.serveToken(w, r)
			case path == exchangePath:
				s.serveExchange(w, r)
			case path == searchPath && s.options.Pages == nil:
				s.serveSearch(w, r)
			case path == LoginPath && s.options.Pages != nil:
				s.serveLogin(w, r)
			case path == healthPath:
				s.serveHealth(w, r)
			case path == "/metrics":
				s.serveMetrics(w, r)
			case strings.HasPrefix(path, protocol.Root), path == strings.TrimSuffix(protocol.Root, "/"):
				s.serveDistribution(w, r)
			default:
				pages.ServeHTTP(w, r)
			}
		})))), s.log))
	return nil
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// openCluster prepares the agreement with other servers in front of the backend. It creates no connection.
func (s *Server) openCluster() (err error) {
	if s.options.Backend == nil {
		return nil
	}
	host, _ := os.Hostname() // It is for people.
	s.id = host + "_" + rand.Text()
	if c := s.options.Backend.Cluster; c != nil {
		if s.claims, err = c.Claims(s.options.Backend.Host, s.id, s.now); err != nil {
			return ErrServer.New(err, "cannot use the cluster of the server")
		}
	}
	s.publisher = s.newPublisher(s.claims)
	return nil
}

// Run keeps the index up to date until the context ends. It fails if the server may not use its cluster.
func (s *Server) Run(ctx context.Context) error {
	if s.publisher != nil {
		if err := s.publisher.start(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beside sync.WaitGroup
	var failed error
	if x, ok := s.options.Indexer.(*LocalIndexer); ok && x.backend != "" {
		beside.Go(func() { x.watchTags(ctx, s.site.options.Interval, s.site.Changed) })
		if x.publication != nil && x.publication.election != nil {
			beside.Go(func() {
				defer cancel()
				failed = s.publisher.ofCluster(x.publication.election.run(ctx))
			})
		}
	}
	err := s.site.Run(ctx)
	beside.Wait()
	return errors.Join(err, failed)
}

// Close releases the resources. No request may be in progress.
func (s *Server) Close() error {
	if s.publisher != nil {
		s.publisher.release()
	}
	return errors.Join(s.packages.Close(), s.images.close(), s.lock.Close())
}

// Site returns the index and the search of the server.
func (s *Server) Site() *Site { return s.site }

func (s *Server) policy() *access.Policy { return s.policies.current() }

// changed updates the index after a change of a repository. It does not wait.
func (s *Server) changed(repository string) { s.site.Changed(repository) }

// written records that a manifest of the backend was written or deleted, so that the next update of the repository asks
// for its digest.
func (s *Server) written(repository, reference string) {
	if x, ok := s.options.Indexer.(*LocalIndexer); ok && repository != indexRepository {
		x.changedTags.add(repository, reference)
	}
}

// policyFileReader reads the policy again when its file changes. While the file is malformed or being written, the last
// policy applies: the beginning of a policy can be valid and lack its last rules.
type policyFileReader struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu     sync.Mutex
	policy *access.Policy
	// file is the state of the file with the policy, and seen the one that was seen last.
	file, seen fileState
	checked    time.Time
}

// fileState identifies the content of a file.
type fileState struct {
	modified time.Time
	size     int64
}

// stateOf returns the state of a file.
func stateOf(info os.FileInfo) fileState { return fileState{info.ModTime(), info.Size()} }

// policyAge is the time for which the file is not checked again, and for which a file that changed must not change
// further.
const policyAge = time.Second

// current returns the policy.
func (p *policyFileReader) current() *access.Policy {
	p.mu.Lock()
	last := p.policy
	p.mu.Unlock()
	policy, err := p.read()
	if err != nil {
		p.log.Error("the access configuration is not used until it is corrected", "file", p.path, "error", err)
		return last
	}
	return policy
}

// read returns the policy in the file, and a default policy without a file.
func (p *policyFileReader) read() (*access.Policy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.policy != nil && now.Sub(p.checked) < policyAge {
		return p.policy, nil
	}
	info, err := os.Stat(p.path)
	p.checked = now
	switch {
	case errors.Is(err, os.ErrNotExist) && p.policy == nil:
		p.policy = &access.Policy{Administrators: []string{defaultAdministrator}}
		return p.policy, nil
	case errors.Is(err, os.ErrNotExist):
		return p.policy, nil
	case err != nil:
		return nil, ErrServer.New(err, "cannot read %s", p.path)
	}
	file := stateOf(info)
	// The clock of a file system can be ahead, so a file that a former check has seen is used, too.
	isComplete := p.policy == nil || now.Sub(file.modified) >= policyAge || file == p.seen
	p.seen = file
	if file == p.file || !isComplete {
		return p.policy, nil
	}
	document, err := os.ReadFile(p.path)
	if err != nil {
		return nil, ErrServer.New(err, "cannot read %s", p.path)
	}
	if int64(len(document)) != file.size && p.policy != nil {
		return p.policy, nil // It is being written.
	}
	policy, err := access.Parse(document)
	if err != nil {
		return nil, err
	}
	if len(policy.Administrators) == 0 {
		policy.Administrators = []string{defaultAdministrator}
	}
	p.policy, p.file = policy, file
	return policy, nil
}

// defaultAdministrator is the administrator without another one in the configuration: the user of tokens that name no
// user.
const defaultAdministrator = "admin"
