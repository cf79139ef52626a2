"""What can be asked in a chat, in words and by slash commands."""

QUESTIONS = """\
Ask about this run, for instance:
  which one first?  how sure are you, and why?  what would change your mind?
  why not model=8?  explain 2  compare 1 and 3  turn proposal 1 into a MaxText line
  what if the batch doubles / sequence 16384 and batch 64 / we use v6e-64 / int8 / adafactor / remat minimal?
  sweep the batch from 128 to 1024   step time with microbatches 1, 2, 4, 8
  does it fit?  tokens per second?  days for a trillion tokens?  top operations?  communication by axis?
  what if we keep tensor at 4?  what is split over what?  is 3 s a step plausible?  what does P(faster) mean?
  what is the bottleneck?  has anybody done this before?  what should I capture next?  one sentence, please
State facts, and they are used: "proposal 1 ran out of memory", "proposal 2 measured 2.1 s", "our batch is 512",
"MFU is 41 %", "we cannot change the batch". "Undo that" takes one back."""

COMMANDS = """\
/help            this list
/proposals       the current proposals
/explain N       reasons, costs, figures and citations of a proposal
/compare N M     proposals or plans side by side
/whatif PLAN     what the engine predicts for a plan, or for "batch doubles"
/facts           facts stated or verified, and the plans they exclude (also /evidence)
/forget N        take a fact back
/sources         where facts and figures come from
/history         your messages and evidence in this session
/verify N        compile a proposal with the TPU compiler (takes minutes)
/try N           run a proposal with the command that the chat was started with, or compile it; also "try it"
/export          the whole session as Markdown
/cost            calls and tokens of language models in this session
/model NAME      switch to another language model
/quit            end the chat; `asap chat` continues it later"""
