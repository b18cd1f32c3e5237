// Package clouds is a stand-in for the token services of Amazon, Azure and Google Cloud, and for the registries that
// accept their tokens.
package clouds

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// KeyID is the name of the only key of Amazon.
	KeyID = "AKID"
	// SecretKey is the secret of the key.
	SecretKey = "amazon-secret-key"
	// ServiceAccount is the token of the ServiceAccount of a Pod, which is exchanged for keys and tokens.
	ServiceAccount = "service-account-token"
	// Secret is the secret of the application of Azure and of the user of Google Cloud.
	Secret = "secret"
	// Entra is the access token of Microsoft Entra ID.
	Entra = "entra-token"
)

// Clouds serves every host of the clouds. The zero value is ready for use.
type Clouds struct {
	// Machine is the cloud whose metadata service the machine has: amazon, azure, google, or none.
	Machine string
	// Denies are the statuses of the responses of services, by host.
	Denies map[string]int
	// Content responds to the requests for content that a registry allows.
	Content http.Handler
	// Now returns the time; nil means the system clock.
	Now func() time.Time
	// Life is the life of a token; zero means an hour.
	Life time.Duration

	mu sync.Mutex
	// issued is the number of tokens, and valid the last one.
	issued int
	valid  string
	asked  map[string]int
}

// Asked returns the number of requests to a host.
func (c *Clouds) Asked(host string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[host]
}

// Valid returns the token that registries accept: the last one that was issued, and "" if there is none.
func (c *Clouds) Valid() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.valid
}

// Expire makes the valid token invalid.
func (c *Clouds) Expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.valid = ""
}

// ServeHTTP responds as the service of the host of a request.
func (c *Clouds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	c.asked[r.Host]++
	c.mu.Unlock()
	if status := c.Denies[r.Host]; status != 0 {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "%s\ndenies it", r.Host)
		return
	}
	name, _, _ := strings.Cut(r.Host, ".")
	switch {
	case isRegistry(r):
		if !c.refuses(w, r) {
			c.Content.ServeHTTP(w, r)
		}
	case r.Host == "169.254.169.254":
		c.machine(w, r)
	case r.Host == "169.254.170.23":
		respond(w, r.Header.Get("Authorization") == ServiceAccount, keys)
	case name == "sts":
		ok := r.FormValue("Action") == "AssumeRoleWithWebIdentity" && r.FormValue("WebIdentityToken") == ServiceAccount
		respond(w, ok && r.FormValue("RoleArn") != "", stsAnswer)
	case r.Host == "login.microsoftonline.com":
		ok := r.URL.Path == "/tenant/oauth2/v2.0/token" && r.FormValue("scope") == azureAudience+"/.default" &&
			(r.FormValue("client_assertion") == ServiceAccount || r.FormValue("client_secret") == Secret)
		respond(w, ok, `{"access_token":"`+Entra+`"}`)
	case r.URL.Path == "/oauth2/exchange":
		c.exchange(w, r)
	case r.Host == "oauth2.googleapis.com":
		c.google(w, r.FormValue("refresh_token") == Secret)
	default:
		c.ecr(w, r)
	}
}

const (
	azureAudience = "https://containerregistry.azure.net"
	keys          = `{"AccessKeyId":"` + KeyID + `","SecretAccessKey":"` + SecretKey + `","Token":"session"}`
	stsAnswer     = `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>` + KeyID + `</AccessKeyId><SecretAccessKey>` + SecretKey +
		`</SecretAccessKey><SessionToken>session</SessionToken></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>`
)

// respond writes an answer if a request is allowed.
func respond(w http.ResponseWriter, ok bool, answer string) {
	if !ok {
		http.Error(w, "not allowed", http.StatusForbidden)
		return
	}
	_, _ = w.Write([]byte(answer))
}

// machine responds as the metadata service of the machine.
func (c *Clouds) machine(w http.ResponseWriter, r *http.Request) {
	const amazon, role = "/latest/", "/latest/meta-data/iam/security-credentials/"
	session := r.Header.Get("X-Aws-Ec2-Metadata-Token") == "imds"
	switch path := r.URL.Path; {
	case c.Machine == "amazon" && path == amazon+"api/token":
		respond(w, r.Method == http.MethodPut, "imds")
	case c.Machine == "amazon" && path == role:
		respond(w, session, "node\n")
	case c.Machine == "amazon" && path == role+"node":
		respond(w, session, keys)
	case c.Machine == "azure" && path == "/metadata/identity/oauth2/token":
		ok := r.Header.Get("Metadata") == "true" && r.FormValue("resource") == azureAudience
		respond(w, ok, `{"access_token":"`+Entra+`"}`)
	case c.Machine == "google" && path == "/computeMetadata/v1/instance/service-accounts/default/token":
		c.google(w, r.Header.Get("Metadata-Flavor") == "Google")
	default:
		http.NotFound(w, r)
	}
}

// issue returns a new token, and the time at which it expires.
func (c *Clouds) issue() (string, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, life := time.Now, c.Life
	if c.Now != nil {
		now = c.Now
	}
	if life == 0 {
		life = time.Hour
	}
	c.issued++
	c.valid = fmt.Sprint("token-", c.issued)
	return c.valid, now().Add(life)
}

func (c *Clouds) google(w http.ResponseWriter, ok bool) {
	if !ok {
		respond(w, false, "")
		return
	}
	token, expires := c.issue()
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	w.Header().Set("Content-Type", "application/json")
	life := int(expires.Sub(now()).Seconds())
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, token, life)
}

// exchange responds as a registry of Azure to a token of Microsoft Entra ID. The password is a JSON Web Token.
func (c *Clouds) exchange(w http.ResponseWriter, r *http.Request) {
	ok := r.FormValue("grant_type") == "access_token" && r.FormValue("service") == r.Host
	if !ok || r.FormValue("access_token") != Entra {
		respond(w, false, "")
		return
	}
	token, expires := c.issue()
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires.Unix()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.valid = "e30." + claims + "." + token
	_, _ = fmt.Fprintf(w, `{"refresh_token":%q}`, c.valid)
}

// ecr responds as the API of Amazon ECR.
func (c *Clouds) ecr(w http.ResponseWriter, r *http.Request) {
	private := r.Header.Get("X-Amz-Target") == "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
	public := r.Header.Get("X-Amz-Target") == "SpencerFrontendService.GetAuthorizationToken"
	if why := verify(r); why != "" || public == private || public != strings.HasPrefix(r.Host, "api.ecr-public.") {
		http.Error(w, `{"__type":"InvalidSignatureException","message":"`+why+`"}`, http.StatusBadRequest)
		return
	}
	token, expires := c.issue()
	encoded := base64.StdEncoding.EncodeToString([]byte("AWS:" + token))
	answer := fmt.Sprintf(`{"authorizationToken":%q,"expiresAt":%d.5}`, encoded, expires.Unix())
	if private {
		answer = "[" + answer + "]"
	}
	_, _ = fmt.Fprintf(w, `{"authorizationData":%s}`, answer)
}

// isRegistry reports whether a request is for content of a registry.
func isRegistry(r *http.Request) bool {
	return strings.Contains(r.Host, ".dkr.ecr.") || strings.HasSuffix(r.Host, ".pkg.dev") ||
		strings.HasSuffix(r.Host, ".azurecr.io") && r.URL.Path != "/oauth2/exchange"
}

// refuses responds to a request for content of a registry without the valid token, and returns true. Registries of
// Amazon require it as a password, and others exchange it for a token of their own.
func (c *Clouds) refuses(w http.ResponseWriter, r *http.Request) bool {
	valid := c.Valid()
	_, password, _ := r.BasicAuth()
	switch {
	case strings.Contains(r.Host, ".dkr.ecr."):
		if valid != "" && password == valid {
			return false
		}
		if password != "" {
			w.WriteHeader(http.StatusForbidden) // As for a token that has expired.
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="ecr"`)
	case r.URL.Path == "/token":
		respond(w, valid != "" && password == valid, `{"token":"of `+valid+`"}`)
		return true
	default:
		if valid != "" && r.Header.Get("Authorization") == "Bearer of "+valid {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+r.Host+`/token"`)
	}
	w.WriteHeader(http.StatusUnauthorized)
	return true
}
