package process

import (
	"slices"
	"testing"
)

func TestAProgramsEnvironmentHasNoSecrets(t *testing.T) {
	in := []string{"PATH=/bin", "HOME=/h", "PWD=/old", "OLDPWD=/older", "KEY=1", "KEYBOARD=us", "SSH_AUTH_SOCK=/s", "TERM=xterm", "LANG=C", "XAUTHORITY=/x",
		"OPENAI_API_KEY=x", "openai_api_key=x", "OPENAI_API_KEY_2=x", "GITHUB_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_SESSION_TOKEN=x",
		"PGPASSWORD=x", "MYSQL_PWD=x", "DB_PASS=x", "APP_SECRETS=x", "TOKEN=x", "GOOGLE_APPLICATION_CREDENTIALS=x", "GH_PAT=x",
		"MINE=x", "FERMATA_RUN=old", "OPENAI_API_KEYS=x", "API_KEY1=x", "GITHUB_TOKENS=x", "TOKEN2=x", "SECRETKEY=x", "AWS_ACCESSKEY=x", "NPM_CONFIG__AUTH=x",
		"HF_AUTH=x", "GH_PAT_2=x"}
	got := environ(in, []string{"mine"}, "/root", "FERMATA_RUN=new")
	want := []string{"PATH=/bin", "HOME=/h", "OLDPWD=/older", "KEY=1", "KEYBOARD=us", "SSH_AUTH_SOCK=/s", "LANG=C", "XAUTHORITY=/x", "PWD=/root", "TERM=dumb",
		"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "NoDefaultCurrentDirectoryInExePath=1", "FERMATA_RUN=new"}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}
