package cloudidentity

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// azureUser is the user whose password is a refresh token (Azure Container Registry, "az acr login
	// --expose-token").
	azureUser = "00000000-0000-0000-0000-000000000000"
	// azureAudience limits access tokens of Microsoft Entra ID to container registries.
	azureAudience = "https://containerregistry.azure.net"
)

// azureToken exchanges an access token of Microsoft Entra ID for a refresh token of a registry (Azure Container
// Registry, "AAD integration").
func (c clients) azureToken(ctx context.Context, host string) (token, error) {
	access, err := c.entraToken(ctx)
	if err != nil {
		return token{}, err
	}
	form := url.Values{"grant_type": {"access_token"}, "service": {host}, "access_token": {access}}
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	raw, err := postForm(ctx, c.public, "https://"+host+"/oauth2/exchange", form)
	if err == nil {
		err = decode(raw, "response of the registry", &answer)
	}
	if err != nil {
		return token{}, err
	}
	if answer.RefreshToken == "" {
		return token{}, fmt.Errorf("%s returned no token", host)
	}
	return token{azureUser, answer.RefreshToken, c.expiryOf(answer.RefreshToken)}, nil
}

// expiryOf returns the time at which a JSON Web Token expires, and a short one if it does not state it.
func (c clients) expiryOf(jwt string) time.Time {
	var claims struct {
		Expiry int64 `json:"exp"`
	}
	parts := strings.Split(jwt, ".")
	if len(parts) == 3 {
		raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(raw, &claims)
	}
	if claims.Expiry == 0 {
		return c.now().Add(10 * time.Minute)
	}
	return time.Unix(claims.Expiry, 0)
}

// entraToken returns an access token of Microsoft Entra ID, of the first identity in the order of the Azure SDKs: that
// of the environment, of the machine, and of the Azure CLI.
func (c clients) entraToken(ctx context.Context) (string, error) {
	tenant, client := os.Getenv("AZURE_TENANT_ID"), os.Getenv("AZURE_CLIENT_ID")
	secret := os.Getenv("AZURE_CLIENT_SECRET")
	if tenant != "" && client != "" && (secret != "" || os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "") {
		return c.entraTokenOf(ctx, tenant, client, secret)
	}
	access, err := c.entraTokenOfMachine(ctx, client)
	if err == nil {
		return access, nil
	}
	scope := azureAudience + "/.default"
	out, installed, other := run(ctx, "az", "account", "get-access-token", "--scope", scope, "--output", "json")
	switch {
	case !installed:
		other = errors.New("the Azure CLI is not installed")
	case other == nil:
		var answer struct {
			AccessToken string `json:"accessToken"`
		}
		if other = decode(out, "output of az", &answer); other == nil {
			return answer.AccessToken, nil
		}
	}
	return "", fmt.Errorf("the environment contains no AZURE_FEDERATED_TOKEN_FILE, %w, and %w", err, other)
}

// entraTokenOf returns an access token of an application, for the token of a ServiceAccount or for a secret.
func (c clients) entraTokenOf(ctx context.Context, tenant, client, secret string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "scope": {azureAudience + "/.default"}}
	if secret != "" {
		form.Set("client_secret", secret)
	} else {
		assertion, err := readFile("AZURE_FEDERATED_TOKEN_FILE")
		if err != nil {
			return "", err
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	}
	authority := cmp.Or(os.Getenv("AZURE_AUTHORITY_HOST"), "https://login.microsoftonline.com/")
	address := strings.TrimSuffix(authority, "/") + "/" + url.PathEscape(tenant) + "/oauth2/v2.0/token"
	return entraAnswer(postForm(ctx, c.public, address, form))
}

// entraTokenOfMachine returns an access token of the managed identity of the machine.
func (c clients) entraTokenOfMachine(ctx context.Context, client string) (string, error) {
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {azureAudience}}
	if client != "" {
		query.Set("client_id", client)
	}
	host := cmp.Or(os.Getenv("AZURE_POD_IDENTITY_AUTHORITY_HOST"), "http://169.254.169.254")
	address := strings.TrimSuffix(host, "/") + "/metadata/identity/oauth2/token?" + query.Encode()
	return entraAnswer(c.get(ctx, http.MethodGet, address, "Metadata", "true"))
}

// entraAnswer parses a response of Microsoft Entra ID or of the metadata service.
func entraAnswer(raw []byte, err error) (string, error) {
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err == nil {
		err = decode(raw, "response with the access token", &answer)
	}
	return answer.AccessToken, err
}
