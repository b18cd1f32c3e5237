package registry

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/fileutil"
	"github.com/xpkg-dev/xpkg/internal/registry/access"
)

const (
	// bearerLife is the lifetime of a bearer token. Clients then request another one, so that a changed policy takes
	// effect.
	bearerLife = 5 * time.Minute
	// keyLength is the length of the key that authenticates bearer tokens.
	keyLength = 32
	// longestBearer limits the length of a bearer token that is parsed.
	longestBearer = 16 << 10
)

// errTooManyGroups is the error for a subject whose bearer token would be longer than the server accepts.
var errTooManyGroups = errors.New(
	"the identity has too many groups; let the issuer leave out those that the rules of the server do not name",
)

// bearerTokens issues and verifies bearer tokens: claims with an authentication code. Servers that share the key accept
// the tokens of each other.
type bearerTokens struct {
	key []byte
	now func() time.Time
}

// bearerClaims is the content of a bearer token.
type bearerClaims struct {
	User   string           `json:"user,omitempty"`
	Groups []string         `json:"groups,omitempty"`
	Grants []access.Scope   `json:"grants,omitempty"`
	Limits [][]access.Scope `json:"limits,omitempty"`
	// Origins are those of the subject. Once the policy lacks one of them, the bearer token is not valid.
	Origins []access.Origin `json:"origins,omitempty"`
	// Requested is the scope that the client requested; see [access.Subject].
	Requested *[]access.Scope `json:"requested,omitempty"`
	Expires   int64           `json:"exp"`
	// Token is the hash of the token for which the bearer token was issued. Once that is revoked, the bearer token is not
	// valid.
	Token string `json:"token,omitempty"`
}

// issue returns a bearer token for a subject, and the time for which it is valid: at most as long as the login.
func (b *bearerTokens) issue(l login, life time.Duration) (string, time.Duration, error) {
	if left := l.expires.Sub(b.now()).Truncate(time.Second); !l.expires.IsZero() && left < life {
		life = left
	}
	s := l.subject
	raw, err := json.Marshal(bearerClaims{
		s.User, s.Groups, s.Grants, s.Limits, s.Origins, s.Requested, b.now().Add(life).Unix(), l.token,
	})
	if err != nil {
		return "", 0, err
	}
	claims := base64.RawURLEncoding.EncodeToString(raw)
	bearer := claims + "." + b.code(claims)
	if len(bearer) > longestBearer {
		return "", 0, errTooManyGroups
	}
	return bearer, life, nil
}

func (b *bearerTokens) code(claims string) string {
	mac := hmac.New(sha256.New, b.key)
	mac.Write([]byte(claims))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// verify returns the subject and the end of a bearer token, and false if the token is not valid now. The function
// exists reports whether the token with a hash still exists.
func (b *bearerTokens) verify(
	bearer string, exists func(hash string) bool, policy *access.Policy,
) (access.Subject, time.Time, bool) {
	claims, code, ok := strings.Cut(bearer, ".")
	if !ok || len(bearer) > longestBearer || !hmac.Equal([]byte(code), []byte(b.code(claims))) {
		return access.Subject{}, time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(claims)
	if err != nil {
		return access.Subject{}, time.Time{}, false
	}
	var c bearerClaims
	if json.Unmarshal(raw, &c) != nil || b.now().Unix() >= c.Expires || c.Token != "" && !exists(c.Token) {
		return access.Subject{}, time.Time{}, false
	}
	s := access.Subject{
		User: c.User, Groups: c.Groups, Grants: c.Grants, Limits: c.Limits, Origins: c.Origins, Requested: c.Requested,
	}
	return s, time.Unix(c.Expires, 0), policy.Accepts(s)
}

// loadKey returns the key in a file, which it creates if it does not exist.
func loadKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) >= keyLength:
		return key, nil
	case err == nil:
		return nil, ErrServer.New(nil, "the key in %s has fewer than %d bytes", path, keyLength)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, ErrServer.New(err, "cannot read the key %s", path)
	}
	key = make([]byte, keyLength)
	_, _ = rand.Read(key) // It never fails.
	if err := fileutil.ReplaceFile(path, fileutil.PrivateMode, key); err != nil {
		return nil, ErrServer.New(err, "cannot write the key %s", path)
	}
	return key, nil
}
