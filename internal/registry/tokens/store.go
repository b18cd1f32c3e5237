// Package tokens stores the tokens of a registry server in a file. The file contains hashes only, so its content does
// not allow a client to log in.
package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrTokens is the code for a file of tokens that cannot be read or written.
var ErrTokens = errcode.Code{
	Name: "RegistryTokens", Class: errcode.Unavailable,
	Cause: "The tokens of the registry server cannot be read or written.",
	Fix:   "Check the permissions of the folder of the server, and the file tokens.json in it.",
}

// ErrTokenNotFound is the code for a token that does not exist.
var ErrTokenNotFound = errcode.Code{
	Name: "RegistryTokenNotFound", Class: errcode.NotFound,
	Cause: "The registry server has no token with this identifier.",
	Fix:   "Run `xpkg registry token list` for the identifiers.",
}

// ErrTokenLife is the code for a token without a valid expiry.
var ErrTokenLife = errcode.Code{
	Name: "RegistryTokenLife", Class: errcode.Usage,
	Cause: "A token must expire, and at most 366 days after it was created.",
	Fix:   "Use --expires with a duration such as 720h.",
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code { return []errcode.Code{ErrTokenLife, ErrTokenNotFound, ErrTokens} }

const (
	// Prefix is the prefix of tokens, by which scanners for secrets recognize them.
	Prefix = "xpkg_"
	// FileName is the name of the file in the folder of the server.
	FileName = "tokens.json"
	// longestLife is the maximum lifetime of a token.
	longestLife = 366 * 24 * time.Hour
	// idLength is the length of an identifier, which is the beginning of the hash.
	idLength = 12
)

// Token is a token without its secret.
type Token struct {
	// ID identifies the token. It reveals nothing about the secret.
	ID string `json:"id"`
	// User is the user that the token authenticates. Its permissions limit the token.
	User string `json:"user"`
	// Scope limits the token to actions on repositories.
	Scope access.Scope `json:"scope"`
	// Note describes the purpose of the token.
	Note    string    `json:"note,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	// Hash is the SHA-256 digest of the secret, in hexadecimal. A fast hash suffices, because secrets have 130 random
	// bits.
	Hash string `json:"hash"`
}

// Subject returns the subject of requests with a token.
func (t Token) Subject() access.Subject {
	return access.Subject{User: t.User}.Limited([]access.Scope{t.Scope})
}

// Store is the file of tokens in a folder. It reads the file again when it changes, so a command can create and revoke
// tokens while the server runs. It is safe for concurrent use.
type Store struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	stamp  stamp
	tokens map[string]Token // by hash
}

type stamp struct {
	modified time.Time
	size     int64
}

// Open returns the tokens in a folder. It does not access the file.
func Open(dir string, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{path: filepath.Join(dir, FileName), now: now}
}

// Lookup returns the valid token with a secret, and false if there is none. The comparison is a lookup of the hash of
// the secret, so its time reveals nothing about other secrets.
func (s *Store) Lookup(secret string) (Token, bool, error) {
	if !strings.HasPrefix(secret, Prefix) {
		return Token{}, false, nil
	}
	return s.find(hash(secret))
}

// Valid reports whether the token with a hash still exists and has not expired.
func (s *Store) Valid(hash string) bool {
	_, ok, err := s.find(hash)
	return ok && err == nil
}

// Check fails if the file cannot be read now, so that it is not known which tokens are valid.
func (s *Store) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refresh()
}

func (s *Store) find(hash string) (Token, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return Token{}, false, err
	}
	t, ok := s.tokens[hash]
	return t, ok && s.now().Before(t.Expires), nil
}

// refresh reads the file if it has changed.
func (s *Store) refresh() error {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		s.tokens, s.stamp = nil, stamp{}
		return nil
	}
	if err != nil {
		return ErrTokens.New(err, "cannot read %s", s.path)
	}
	if now := (stamp{info.ModTime(), info.Size()}); s.tokens == nil || s.stamp != now {
		tokens, err := read(s.path)
		if err != nil {
			return err
		}
		s.stamp, s.tokens = now, map[string]Token{}
		for _, t := range tokens {
			s.tokens[t.Hash] = t
		}
	}
	return nil
}

func read(path string) ([]Token, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ErrTokens.New(err, "cannot read %s", path)
	}
	var tokens []Token
	if err := json.Unmarshal(content, &tokens); err != nil {
		return nil, ErrTokens.New(err, "cannot parse %s", path)
	}
	return tokens, nil
}

// List returns the tokens, the oldest first, including expired ones.
func (s *Store) List() ([]Token, error) {
	tokens, err := read(s.path)
	slices.SortStableFunc(tokens, func(a, b Token) int { return a.Created.Compare(b.Created) })
	return tokens, err
}

// Create stores a new token and returns its secret, which cannot be recovered later.
func (s *Store) Create(user, note string, scope access.Scope, life time.Duration) (secret string, t Token, err error) {
	if life <= 0 || life > longestLife {
		return "", Token{}, ErrTokenLife.New(nil, "a token cannot have the lifetime %s", life)
	}
	if err := scope.Check(); err != nil {
		return "", Token{}, err
	}
	secret = Prefix + strings.ToLower(rand.Text())
	now := s.now().UTC().Truncate(time.Second)
	t = Token{User: user, Note: note, Scope: scope, Created: now, Expires: now.Add(life), Hash: hash(secret)}
	t.ID = t.Hash[:idLength]
	err = s.change(func(tokens []Token) ([]Token, error) {
		// Expired tokens cannot be used again.
		kept := slices.DeleteFunc(tokens, func(old Token) bool { return !now.Before(old.Expires) })
		return append(kept, t), nil
	})
	return secret, t, err
}

// Revoke deletes the token with an identifier.
func (s *Store) Revoke(id string) error {
	return s.change(func(tokens []Token) ([]Token, error) {
		kept := slices.DeleteFunc(slices.Clone(tokens), func(t Token) bool { return t.ID == id })
		if len(kept) == len(tokens) {
			return nil, ErrTokenNotFound.New(nil, "there is no token %q", id)
		}
		return kept, nil
	})
}

// change replaces the file, with a lock against other processes.
func (s *Store) change(edit func([]Token) ([]Token, error)) (err error) {
	if err := fileutil.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return s.failed(err, "create the folder of")
	}
	lock := flock.New(s.path + ".lock")
	if err := lock.Lock(); err != nil {
		return s.failed(err, "lock")
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	tokens, err := read(s.path)
	if err != nil {
		return err
	}
	if tokens, err = edit(tokens); err != nil {
		return err
	}
	content, err := json.MarshalIndent(tokens, "", "  ")
	if err != nil {
		return ErrTokens.New(err, "cannot encode the tokens")
	}
	if err := fileutil.ReplaceFile(s.path, fileutil.PrivateMode, append(content, '\n')); err != nil {
		return s.failed(err, "write")
	}
	return nil
}

// failed returns the error for a change of the file, with the remedy if it is known.
func (s *Store) failed(err error, action string) error {
	failed := ErrTokens.New(err, "cannot %s %s", action, s.path)
	if advice := fileutil.DirectoryAdvice(err, filepath.Dir(s.path), "--dir"); advice != "" {
		return failed.WithDo("%s", advice)
	}
	return failed
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
