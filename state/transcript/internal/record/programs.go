package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is a command for the shell and what is typed into it. A key starting
// with = is typed as it is, others are names of send-keys.
type program struct {
	name    string
	needs   string
	command string
	keys    []string
}

const alone = "unshare -pf --mount-proc " // so that top and its like see nobody else

var programs = []program{
	{"bash", "bash", "bash --norc --noprofile -i", []string{"=echo hello world", "Enter", "=ls -la --color=always --time-style=+ src", "Enter", "=echo " + strings.Repeat("long ", 30), "Enter", "Up", "C-a", "C-k", "=seq 40", "Enter", "C-r", "=hel", "Enter", "=cat <<X", "Enter", "=a", "Enter", "=X", "Enter", "=echo \u6f22\u5b57 e\u0301", "C-w", "C-w", "Enter", "C-l", "=exit", "Enter"}},
	{"bash-edit", "bash", "bash --norc --noprofile -i", []string{"=echo abcdefghij", "Left Left Left Left", "=XYZ", "BSpace BSpace", "M-b M-d", "C-y C-y", "Home", "=true; ", "End", "Tab", "=src/", "Tab Tab", "C-c", "=printf 'no newline'", "Enter", "=ls", "Enter"}},
	{"dash", "dash", "dash -i", []string{"=for i in 1 2 3; do echo line $i; done", "Enter", "=printf 'a\\tb\\tc\\n'", "Enter"}},
	{"zsh", "zsh", "PS1='%% ' PROMPT='%% ' zsh -f -i", []string{"=echo hello", "Enter", "=ls src/", "Tab", "Tab", "Tab", "Enter", "=printf nonewline", "Enter", "=echo " + strings.Repeat("wide ", 25), "C-a", "=true; ", "Enter", "C-r", "=hel", "Enter", "C-l"}},
	{"fish", "fish", "fish --no-config -i", []string{"=function fish_prompt; echo '> '; end; clear", "Enter", "=echo hello", "Enter", "=ec", "Tab", "Right", "Enter", "=ls src/", "Tab", "Tab", "Enter", "=for i in (seq 30); echo $i; end", "Enter", "Up", "C-c"}},
	{"vim", "vim", "vim -u NONE -N src/main.go", []string{"=ihello ", "Escape", "=G", "=gg", "=/func", "Enter", "=dd", "=u", "=:set number", "Enter", "=ofoo\tbar \u6f22\u5b57", "Escape", "C-f", "C-b", "=:q!", "Enter"}},
	{"vim-split", "vim", "vim -u NONE -N -O src/main.go README", []string{"C-w w", "=:split", "Enter", "=:set nowrap list", "Enter", "C-e C-e C-e", "=:only", "Enter", "=:set hlsearch", "Enter", "=/e", "Enter", "=:qa!", "Enter"}},
	{"vimdiff", "vim", "vim -u NONE -N -d src/main.go src/other.go", []string{"=]c", "=]c", "=do", "=:qa!", "Enter"}},
	{"vim-alt", "vim", "echo before; vim -u NONE -N README; echo after; sleep 1", []string{"=ix", "Escape", "=:q!", "Enter"}},
	{"nano", "nano", "nano -I README", []string{"=typed text", "Enter", "C-v", "C-w", "=line", "Enter", "C-k C-k", "C-u", "C-x", "=n"}},
	{"less", "less", "less README", []string{"Space", "Space", "=/line", "Enter", "=n", "=G", "=g", "=q"}},
	{"less-S", "less", "less -S -N long.txt", []string{"Right", "Right", "Space", "Left", "=q"}},
	{"less-R", "less", "git log --color=always -p | less -R", []string{"Space", "=b", "=q"}},
	{"git-log", "git", "git --no-pager log --color=always --graph --stat; sleep 1", nil},
	{"git-diff", "git", "git --no-pager diff --color=always HEAD~3; git --no-pager show --color=always --word-diff; sleep 1", nil},
	{"git-add", "git", "git add -p", []string{"=?", "Enter", "=y", "Enter", "=q", "Enter"}},
	{"top", "top", alone + "top -d 0.3", []string{"=1", "=t", "=c", "=q"}},
	{"htop", "htop", alone + "htop -d 3", []string{"F5", "Down", "F10"}},
	{"watch", "watch", "watch -n 0.3 'echo tick; ls src'", []string{"Space", "=q"}},
	{"watch-d", "watch", "watch -c -d -n 0.2 'seq $((RANDOM % 5)) 12'", []string{"Space", "C-c"}},
	{"dialog", "dialog", "dialog --menu 'Choose one' 12 40 5 1 one 2 two 3 three", []string{"Down", "Down", "Tab", "Enter"}},
	{"dialog-gauge", "dialog", "for i in 0 25 50 75 100; do echo $i; sleep 0.1; done | dialog --gauge working 7 40; sleep 1", nil},
	{"whiptail", "whiptail", "whiptail --checklist Select 12 40 4 a first ON b second OFF c third OFF", []string{"Down", "Space", "Tab", "Enter"}},
	{"mc", "mc", "mc -d /tmp/demo/src /tmp/demo", []string{"Down", "Down", "Tab", "F9", "Escape Escape", "F10", "Enter"}},
	{"python", "python3", "python3 -q -i", []string{"=1+1", "Enter", "=for i in range(30): print(i, 'x'*i)", "Enter", "Enter", "=print('\u6f22\u5b57\\t\U0001f600')", "Enter", "Up", "Enter", "=1/0", "Enter", "C-d"}},
	{"node", "node", "NODE_REPL_HISTORY= node", []string{"=[1,2,3].map(x => x*2)", "Enter", "=console.log('hi'); process.ver", "Tab", "Enter", "=.help", "Enter", "=.exit", "Enter"}},
	{"sqlite", "sqlite3", "sqlite3", []string{"=create table t(a,b); insert into t values(1,'x'),(2,'y');", "Enter", "=.mode box", "Enter", "=select * from t;", "Enter"}},
	{"bc", "bc", "bc -q", []string{"=2^200", "Enter", "=scale=50; 1/7", "Enter"}},
	{"tree", "tree", "tree -C; tree -a src; sleep 1", nil},
	{"jq", "jq", "jq -C . data.json; sleep 1", nil},
	{"clear", "clear", "seq 30; clear; echo after; seq 5; TERM=screen clear; echo again; sleep 1", nil},
	{"reset", "reset", "seq 30; printf '\\033[31m\\033(0lqk'; reset; echo after; tput reset; echo last; sleep 1", nil},
	{"tput", "tput", "for c in 'cup 3 5' 'el' 'cup 5 0' 'ed' smcup 'cup 2 2' rmcup sc 'cup 0 0' rc bold 'setaf 2' sgr0 'cup 4 4' 'il 2' 'dl 1' 'ich 3' 'dch 2' ri 'csr 2 6' 'indn 2' 'csr 0 9' smir rmir hpa; do tput $c; echo \"[$c]\"; done; sleep 1", nil},
	{"apt-style", "", "sh scripts/apt.sh; sleep 1", nil},
	{"npm-style", "", "sh scripts/npm.sh; sleep 1", nil},
	{"docker-style", "", "sh scripts/docker.sh; sleep 1", nil},
	{"cargo-style", "", "sh scripts/cargo.sh; sleep 1", nil},
	{"wget-style", "", "sh scripts/wget.sh; sleep 1", nil},
	{"cjk", "", "cat cjk.txt; cat cjk.txt | fold -w 33; sleep 1", nil},
	{"emoji", "", "cat emoji.txt; sleep 1", nil},
	{"colours", "", "sh scripts/colours.sh; sleep 1", nil},
	{"long-lines", "", "cat long.txt; seq -s ' ' 900; echo; sleep 1", nil},
	{"flood", "seq", "seq 2500; sleep 1", nil},
	{"tabs", "", "printf 'a\\tb\\tc\\n\\tx\\ty\\n'; tabs -4; printf 'a\\tb\\tc\\n'; expand -t 3 README | head; sleep 1", nil},
	{"tmux", "tmux", "tmux -L rec-inner -f /dev/null new -s inner 'PS1=\"$ \" sh'", []string{"=ls", "Enter", "C-b %", "=seq 20", "Enter", "C-b \"", "C-b z", "C-b [", "Up Up", "=q", "C-b :", "=kill-server", "Enter"}},
	{"ed", "ed", "ed -p '* ' README", []string{"=1,5p", "Enter", "=a", "Enter", "=new", "Enter", "=.", "Enter", "=Q", "Enter"}},
	{"man", "", "printf '.TH demo 1\\n.SH NAME\\ndemo \\\\- a page\\n.SH TEXT\\n.B bold\\n.I under\\ntext that goes on for a while and wraps.\\n' > demo.1; PAGER='less -R' man -l ./demo.1", []string{"Space", "=q"}},
}

// prepare fills the demo directory.
func prepare() error {
	if err := os.RemoveAll(demo); err != nil {
		return err
	}
	for _, d := range []string{"src", "scripts"} {
		if err := os.MkdirAll(filepath.Join(demo, d), 0o755); err != nil {
			return err
		}
	}
	for name, text := range files() {
		if err := os.WriteFile(filepath.Join(demo, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	git := exec.Command("sh", "-c", `set -e; export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git init -q -b main; git config user.name demo; git config user.email demo@example.com
for i in 1 2 3 4 5; do echo "change $i" >> README; git add -A; git commit -qm "change number $i"; done
git checkout -q -b side HEAD~2; echo side > side; git add -A; git commit -qm 'on the side'; git checkout -q main; git merge -q --no-edit side
sed -i 's/line 3/line three/; s/line 30/line thirty/' README`)
	git.Dir = demo
	git.Env = append(os.Environ(), "HOME="+demo)
	out, err := git.CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return err
}

func files() map[string]string {
	var readme, long strings.Builder
	for i := range 60 {
		readme.WriteString("line " + strings.Repeat("x", i%7) + string(rune('0'+i%10)) + "\n")
		long.WriteString(strings.Repeat("word"+string(rune('a'+i%26))+" ", 8*(i%9)) + "\n")
	}
	code := "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Println(\"hello\", i)\n\t}\n}\n"
	return map[string]string{
		"README": readme.String() + "line 3\nline 30\n", "long.txt": long.String(),
		"src/main.go": code, "src/other.go": strings.Replace(code, "10", "20", 1), "src/a file.txt": "x\n",
		"data.json": `{"a":[1,2,{"b":null}],"text":"x\ty \u6f22","long":"` + strings.Repeat("z", 120) + `"}`,
		"cjk.txt":   "\u6f22\u5b57\u304b\u306a\u4ea4\u3058\u308a\u6587\n\ud55c\uad6d\uc5b4 \ubb38\uc7a5\n\u4e2d\u6587\uff0c\u6807\u70b9\u3002abc\u6f22\n" + strings.Repeat("\u65e5\u672c\u8a9e\u306e\u9577\u3044\u884c", 12) + "\nr\u00e9sum\u00e9 e\u0301 o\u0308\n\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05e2\u05d1\u05e8\u05d9\u05ea\n\u0e44\u0e17\u0e22\n",
		"emoji.txt": "\U0001f600 \U0001f389 \U0001f44d\U0001f3fd \u2764\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2714\ufe0f \u26a0\ufe0f \U0001f6a8|\n" + strings.Repeat("\U0001f680\U0001f4a5", 30) + "\n\u2603 \u2728 \u231b \u23f0 |\n",
		"scripts/apt.sh": `rows=$(stty size | cut -d' ' -f1)
printf '\n\0337\033[0;%dr\0338\033[1A' $((rows-1))
for i in 10 30 50 70 90 100; do
 echo "Unpacking package-$i ..."
 printf '\0337\033[%d;0f\033[42m\033[30mProgress: [%3d%%]\033[49m\033[39m [%s] \0338' $rows $i "$(printf '%*s' $((i/5)) '' | tr ' ' '#')"
 sleep 0.05
done
printf '\0337\033[0;%dr\0338\033[1A\033[J\n' $rows; echo done
`,
		"scripts/npm.sh": `for i in 1 2 3 4 5 6 7 8; do printf '\033[2K\033[1G\033[?25l%s reify:package-%d: timing' "$(echo '|/-\' | cut -c$((i%4+1)))" $i; sleep 0.03; done
printf '\033[2K\033[1G\033[?25h'; echo 'added 8 packages in 1s'
`,
		"scripts/docker.sh": `for l in 1 2 3 4; do echo "layer$l: Waiting"; done
for p in 10 40 70 100; do printf '\033[4A'; for l in 1 2 3 4; do printf '\033[2K\rlayer%d: Downloading [%s>%*s] %d%%\r\033[1B' $l "$(printf '%*s' $((p/5)) '' | tr ' ' '=')" $((20-p/5)) '' $p; done; sleep 0.05; done
echo 'Status: done'
`,
		"scripts/cargo.sh": `for i in 1 2 3 4 5 6; do printf '\033[K\033[32m\033[1m   Compiling\033[0m crate-%d v1.0\n' $i; printf '\033[36m\033[1m    Building\033[0m [%s>%*s] %d/6: crate\r' "$(printf '%*s' $((i*3)) '' | tr ' ' '=')" $((18-i*3)) '' $i; sleep 0.03; done
printf '\033[K\033[32m\033[1m    Finished\033[0m dev in 1s\n'
`,
		"scripts/wget.sh": `cols=$(stty size | cut -d' ' -f2)
for p in 5 25 50 75 100; do printf '\rfile.bin %3d%%[%s>%*s] %dK  %dKB/s' $p "$(printf '%*s' $((p*(cols-40)/100)) '' | tr ' ' '=')" $(((100-p)*(cols-40)/100)) '' $p $((p*3)); sleep 0.03; done; echo
printf 'a bar that is much wider than the pane, so that it wraps: %0100d\r' 1; printf 'a bar that is much wider than the pane, so that it wraps: %0100d\r\n' 2
`,
		"scripts/colours.sh": `for i in 0 1 2 3 4 5 6 7; do printf '\033[3%dm fg%d \033[4%dm bg%d \033[0m\n' $i $i $i $i; done
for i in 16 52 88 124 160 196; do printf '\033[48;5;%dm  \033[38;2;%d;0;0m x \033[m' $i $i; done; echo
printf '\033[44m\033[2J\033[Hblue\033[K\n\033[mplain\033[K\n\033[4:3mcurly\033[4:0m \033[9mstrike\033[m \033[58;5;1munder\033[m\n'
`,
	}
}
