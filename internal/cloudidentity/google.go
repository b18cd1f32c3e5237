package cloudidentity

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	googleauth "golang.org/x/oauth2/google"
)

const (
	// googleUser is the user whose password is an access token (Artifact Registry, "Access token").
	googleUser = "oauth2accesstoken"
	// googleScope allows what the roles of the identity allow.
	googleScope = "https://www.googleapis.com/auth/cloud-platform"
)

// googleToken returns an access token of the Application Default Credentials: of a file, or of the metadata service.
func (c clients) googleToken(ctx context.Context) (token, error) {
	if !hasGoogleFile() {
		return c.googleMetadataToken(ctx)
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, c.public)
	found, err := googleauth.FindDefaultCredentials(ctx, googleScope)
	if err != nil {
		return token{}, err
	}
	t, err := found.TokenSource.Token()
	if err != nil {
		return token{}, err
	}
	return token{googleUser, t.AccessToken, t.Expiry}, nil
}

// googleMetadataToken returns an access token of the metadata service of the machine or of GKE.
func (c clients) googleMetadataToken(ctx context.Context) (token, error) {
	path := "instance/service-accounts/default/token?" + url.Values{"scopes": {googleScope}}.Encode()
	raw, err := metadata.NewClient(c.metadata).GetWithContext(ctx, path)
	if err != nil {
		return token{}, err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := decode([]byte(raw), "response of the metadata service", &answer); err != nil {
		return token{}, err
	}
	return token{googleUser, answer.AccessToken, c.now().Add(time.Duration(answer.ExpiresIn) * time.Second)}, nil
}

// hasGoogleFile reports whether a file contains credentials. Without one, the library would search for the metadata
// service without a limit, once for the life of the process.
func hasGoogleFile() bool {
	if os.Getenv("GOOGLE_APPLICATION_CREDENTIALS") != "" {
		return true
	}
	home, _ := os.UserHomeDir()
	dir := filepath.Join(home, ".config")
	if runtime.GOOS == "windows" {
		dir = os.Getenv("APPDATA")
	}
	_, err := os.Stat(filepath.Join(dir, "gcloud", "application_default_credentials.json"))
	return err == nil
}
